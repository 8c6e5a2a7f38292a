package layering_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/layering"
)

// stages returns the stages of the chain that a file assigns, in order, as part and type: chain.Call = []filter.Filter{...}. The stages of
// a list are literals, or variables that the file sets to literals.
func stages(t *testing.T, source []byte) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "chain.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{}
	var all []string
	ast.Inspect(f, func(n ast.Node) bool {
		assign, ok := n.(*ast.AssignStmt)
		if !ok || len(assign.Lhs) != 1 || len(assign.Rhs) != 1 {
			return true
		}
		switch left := assign.Lhs[0].(type) {
		case *ast.Ident:
			variables[left.Name] = literalOf(assign.Rhs[0])
		case *ast.SelectorExpr:
			list, ok := assign.Rhs[0].(*ast.CompositeLit)
			if x, isIdent := left.X.(*ast.Ident); !ok || !isIdent || x.Name != "chain" {
				return true
			}
			for _, elem := range list.Elts {
				name := literalOf(elem)
				if id, ok := elem.(*ast.Ident); ok {
					name = variables[id.Name]
				}
				if name == "" {
					t.Errorf("stage %d of chain.%s cannot be read: write a literal, or a variable that is set to one", len(all), left.Sel.Name)
				}
				all = append(all, left.Sel.Name+"."+name)
			}
		}
		return true
	})
	return all
}

// literalOf returns the type of filter.Judge{...} and &filter.Judge{...}, "" for another
// expression.
func literalOf(e ast.Expr) string {
	if ref, ok := e.(*ast.UnaryExpr); ok {
		e = ref.X
	}
	if lit, ok := e.(*ast.CompositeLit); ok {
		if sel, ok := lit.Type.(*ast.SelectorExpr); ok {
			return sel.Sel.Name
		}
	}
	return ""
}

// broken returns what stages break of a row.
func broken(row layering.Order, stages []string) []string {
	named := slices.Concat(row.Before, row.After)
	places := func(names []string) (all []int, unknown []string) {
		for _, name := range names {
			part, every := strings.CutSuffix(name, "*")
			found := false
			for i, s := range stages {
				if s == name || every && strings.HasPrefix(s, part) && !slices.Contains(named, s) {
					all, found = append(all, i), true
				}
			}
			if !found {
				unknown = append(unknown, fmt.Sprintf("there is no stage %s: rename or delete its rows in test/layering/order.go", name))
			}
		}
		return all, unknown
	}
	before, faults := places(row.Before)
	after, more := places(row.After)
	faults = append(faults, more...)
	for _, b := range before {
		for _, a := range after {
			if b > a {
				faults = append(faults, fmt.Sprintf("%s must stand before %s: %s", stages[b], stages[a], row.Why))
			}
		}
	}
	return faults
}

func TestChainKeepsItsOrder(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../../gateway/chain.go")
	if err != nil {
		t.Fatal(err)
	}
	got := stages(t, source)
	for _, row := range layering.Orders() {
		for _, fault := range broken(row, got) {
			t.Errorf("gateway/chain.go: %s", fault)
		}
	}
}

// The reader and the judge of order themselves.
func TestOrderIsRead(t *testing.T) {
	t.Parallel()
	got := stages(t, []byte(`package gateway
func f() {
	chain := new(filter.Chain)
	once := &once.Repeats{Finder: finder}
	chain.Head = []filter.Filter{filter.Size{}, &filter.Count{Recorder: r}}
	chain.Call = []filter.Filter{once, &filter.Judge{Reader: &filter.Reader{}}, filter.Size{}}
	other.Call = []filter.Filter{filter.Share{}}
}`))
	if want := []string{"Head.Size", "Head.Count", "Call.Repeats", "Call.Judge", "Call.Size"}; !slices.Equal(got, want) {
		t.Fatalf("stages %q, want %q", got, want)
	}
	for _, c := range []struct {
		name          string
		before, after string
		want          int
	}{
		{"kept", "Call.Repeats", "Call.Judge", 0},
		{"turned round", "Call.Judge", "Call.Repeats", 1},
		{"across parts", "Head.Size", "Call.Size", 0},
		{"across parts, turned round", "Call.Size", "Head.Size", 1},
		{"last", "Call.*", "Call.Size", 0},
		{"not last", "Call.*", "Call.Judge", 1},
		{"first", "Call.Repeats", "Call.*", 0},
		{"no such stage", "Call.Count", "Call.Size", 1},
	} {
		row := layering.Order{Before: []string{c.before}, After: []string{c.after}}
		if faults := broken(row, got); len(faults) != c.want {
			t.Errorf("%s: %q, want %d", c.name, faults, c.want)
		}
	}
}
