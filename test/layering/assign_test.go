package layering_test

import (
	"go/ast"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gopackages "golang.org/x/tools/go/packages"
)

// exchangeFiles are the files of gateway/filter that declare the exchange and its parts.
var exchangeFiles = []string{"exchange.go", "parts.go"}

// A note of one stage to another has one author: no field of the exchange or of its parts is assigned by two packages. A package that
// has to change a field of another one calls a method.
func TestOnePackageAssignsAField(t *testing.T) {
	t.Parallel()
	const filter = module + "/gateway/filter"
	users := []string{filter}
	for _, p := range list(t) {
		if slices.Contains(p.Imports, filter) || slices.Contains(p.Imports, "gateway/filter") {
			users = append(users, module+"/"+strings.TrimPrefix(p.ImportPath, module+"/"))
		}
	}
	loaded, err := gopackages.Load(&gopackages.Config{Dir: "../..", Mode: gopackages.NeedName | gopackages.NeedSyntax | gopackages.NeedTypes | gopackages.NeedTypesInfo | gopackages.NeedFiles | gopackages.NeedImports | gopackages.NeedExportFile}, users...)
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]map[string]bool{}
	for _, p := range loaded {
		for _, err := range p.Errors {
			t.Fatal(err)
		}
		a := assigned{p: p, fields: map[string]bool{}}
		for _, f := range p.Syntax {
			ast.Inspect(f, a.visit)
		}
		for name := range a.fields {
			if by[name] == nil {
				by[name] = map[string]bool{}
			}
			by[name][strings.TrimPrefix(p.PkgPath, module+"/")] = true
		}
	}
	for _, name := range []string{"Exchange.Response", "Exchange.Idempotency", "IdempotencyState.Recorded", "Cost.Reservation", "Reservation.Current", "Approval.Grant"} {
		if len(by[name]) == 0 {
			t.Errorf("the test does not see that %s is assigned", name)
		}
	}
	for name, who := range by {
		if len(who) > 1 {
			t.Errorf("%s is assigned by %q: give it one author, and the others a method", name, slices.Sorted(maps.Keys(who)))
		}
	}
}

// assigned collects the fields that a package assigns.
type assigned struct {
	p      *gopackages.Package
	fields map[string]bool
}

// visit notes assignments, and literals of parts unless they are in a record of the exchange.
func (a *assigned) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return n.Name.Name != "Snapshot" && n.Name.Name != "snapshot"
	case *ast.AssignStmt:
		for _, left := range n.Lhs {
			a.target(left)
		}
	case *ast.IncDecStmt:
		a.target(n.X)
	case *ast.CompositeLit:
		if owner := a.owner(a.p.TypesInfo.TypeOf(n)); owner != "" && owner != "Exchange" && owner != "Inbound" { // which a door makes
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					a.fields[owner+"."+types.ExprString(kv.Key)] = true
				}
			}
		}
	}
	return true
}

// target notes the fields on the way to the assigned one: in ex.Body.Doc, the field Doc of the
// part Body.
func (a *assigned) target(e ast.Expr) {
	switch e := e.(type) {
	case *ast.IndexExpr:
		a.target(e.X)
	case *ast.ParenExpr:
		a.target(e.X)
	case *ast.SelectorExpr:
		if s := a.p.TypesInfo.Selections[e]; s != nil && s.Kind() == types.FieldVal {
			if owner := a.owner(s.Recv()); owner != "" && (owner != "Inbound" || a.inExchange(e.X)) {
				a.fields[owner+"."+e.Sel.Name] = true
			}
		}
	}
}

// inExchange reports whether an expression is a field of an exchange: a door makes the request before that.
func (a *assigned) inExchange(e ast.Expr) bool {
	selector, ok := e.(*ast.SelectorExpr)
	return ok && a.owner(a.p.TypesInfo.TypeOf(selector.X)) == "Exchange"
}

// owner returns the name of the exchange or a part, "" for another type.
func (a *assigned) owner(of types.Type) string {
	if pointer, ok := of.(*types.Pointer); ok {
		of = pointer.Elem()
	}
	named, ok := of.(*types.Named)
	if !ok || named.Obj().Pkg() == nil || named.Obj().Pkg().Path() != module+"/gateway/filter" {
		return ""
	}
	if !slices.Contains(exchangeFiles, filepath.Base(a.p.Fset.Position(named.Obj().Pos()).Filename)) {
		return ""
	}
	return named.Obj().Name()
}
