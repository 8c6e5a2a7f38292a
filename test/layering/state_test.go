package layering_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// State of a package outlives requests, reloads and tests. Variables of packages are read-only tables: nothing assigns to them or to
// their members, nothing takes their address, and their types are not made to be changed. A memo has what a pure function
// returned: the next answer would be the same.
func TestPackageVariablesNeverChange(t *testing.T) {
	t.Parallel()
	memos := map[string]string{"config/strictyaml": "plans"} // of types
	for _, p := range list(t) {
		files := resolved(t, p.Dir, p.GoFiles)
		globals := map[string]bool{}
		for _, f := range files {
			for _, spec := range variables(f) {
				for _, name := range spec.Names {
					globals[name.Name] = name.Name != "_"
				}
				if kind := stateful(spec.Type); kind != "" && memos[p.ImportPath] != spec.Names[0].Name {
					t.Errorf("%s: variable %s of the package is a %s, made to be changed", p.ImportPath, spec.Names[0], kind)
				}
			}
		}
		for _, f := range files {
			for name, how := range changes(f, globals) {
				t.Errorf("%s: variable %s of the package is %s", p.ImportPath, name, how)
			}
		}
	}
}

// resolved parses files with the identifiers of each resolved within it.
func resolved(t *testing.T, dir string, names []string) []*ast.File {
	t.Helper()
	files := make([]*ast.File, len(names))
	for i, name := range names {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files[i] = f
	}
	return files
}

// variables lists the package-level variable declarations of a file.
func variables(f *ast.File) []*ast.ValueSpec {
	var specs []*ast.ValueSpec
	for _, d := range f.Decls {
		gen, ok := d.(*ast.GenDecl)
		if !ok || gen.Tok != token.VAR {
			continue
		}
		for _, s := range gen.Specs {
			if spec, ok := s.(*ast.ValueSpec); ok {
				specs = append(specs, spec)
			}
		}
	}
	return specs
}

// stateful names a declared type of sync or sync/atomic.
func stateful(typ ast.Expr) string {
	if index, ok := typ.(*ast.IndexExpr); ok { // atomic.Pointer[T]
		typ = index.X
	}
	sel, ok := typ.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := sel.X.(*ast.Ident); ok && (x.Name == "sync" || x.Name == "atomic") {
		return x.Name + "." + sel.Sel.Name
	}
	return ""
}

// changes finds a file's changes of the package's variables, by name.
func changes(f *ast.File, globals map[string]bool) map[string]string {
	found := map[string]string{}
	note := func(e ast.Expr, how string) {
		if id := rootOf(e); id != nil && globals[id.Name] && global(f, id) {
			found[id.Name] = how
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if n.Tok != token.DEFINE {
					note(left, "assigned to")
				}
			}
		case *ast.IncDecStmt:
			note(n.X, "counted in")
		case *ast.RangeStmt:
			if n.Tok == token.ASSIGN {
				note(n.Key, "assigned to")
				note(n.Value, "assigned to")
			}
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				note(n.X, "handed on by its address")
			}
		case *ast.CallExpr:
			if fn, ok := n.Fun.(*ast.Ident); ok && (fn.Name == "delete" || fn.Name == "clear") {
				note(n.Args[0], "emptied")
			}
		}
		return true
	})
	return found
}

// rootOf is the identifier at the left of x, x.f, x[i], *x.
func rootOf(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// global reports whether an identifier is the package's and no local of the same name. One declared in another file is not resolved.
func global(f *ast.File, id *ast.Ident) bool {
	return id.Obj == nil || id.Obj == f.Scope.Lookup(id.Name)
}

// A call such as Swap(cfg, true, false) tells its reader nothing: exported functions take no bools, unless one is all they take
// or their comment explains it with If it is set.
func TestExportedFunctionsTakeNoBareBools(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		for name, f := range parse(t, p.Dir, p.GoFiles) {
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || !fn.Name.IsExported() || fn.Name.Name == "If" || fn.Type.Params.NumFields() < 2 {
					continue
				}
				for _, param := range fn.Type.Params.List {
					if typ, ok := param.Type.(*ast.Ident); ok && typ.Name == "bool" {
						t.Errorf("%s/%s: %s takes a bare bool, %s", p.ImportPath, name, fn.Name, param.Names)
					}
				}
			}
		}
	}
}

// Time is waited for in a bubble of testing/synctest or not at all.
func TestTestsSleepInBubblesOnly(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		for name, f := range parse(t, p.Dir, slices.Concat(p.TestGoFiles, p.XTestGoFiles)) {
			if slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing/synctest"` }) {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Sleep" {
					if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && !strings.HasPrefix(p.ImportPath, "test/layering") {
						t.Errorf("%s/%s sleeps: wait for what is waited for", p.ImportPath, name)
					}
				}
				return true
			})
		}
	}
}

// The finder itself, on changes that it must find and others that it must not.
func TestChangesToPackageVariables(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, body, want string
	}{
		{"read", "_ = table[1] + len(table)", ""},
		{"assigned", "count = 1", "count assigned to"},
		{"added to", "count += 1", "count assigned to"},
		{"counted", "count++", "count counted in"},
		{"element", "table[1] = 2", "table assigned to"},
		{"field of element", "rows[0].n = 2", "rows assigned to"},
		{"behind a pointer", "(*pointer).n = 2", "pointer assigned to"},
		{"deleted from", "delete(table, 1)", "table emptied"},
		{"cleared", "clear(table)", "table emptied"},
		{"address taken", "use(&count)", "count handed on by its address"},
		{"ranged over into", "for count = range 3 {}", "count assigned to"},
		{"declared in another file", "other = 1", "other assigned to"},
		{"local of the same name", "count := 1; count++; use(&count)", ""},
		{"parameter of the same name", "func(table map[int]int) { table[1] = 1 }(nil)", ""},
	}
	const head = "package p\nvar count int\nvar table = map[int]int{}\nvar rows []row\nvar pointer *row\nfunc f() {\n"
	globals := map[string]bool{"count": true, "table": true, "rows": true, "pointer": true, "other": true}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, err := parser.ParseFile(token.NewFileSet(), "p.go", head+c.body+"\n}\n", 0)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for name, how := range changes(f, globals) {
				got = append(got, name+" "+how)
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("found %q, want %q", text, c.want)
			}
		})
	}
}
