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

// stages returns the stages of the order that a file assigns, as part and name: order.Call = []string{...}.
func stages(t *testing.T, source []byte) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "features.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	ast.Inspect(f, func(n ast.Node) bool {
		assign, ok := n.(*ast.AssignStmt)
		if !ok || len(assign.Lhs) != 1 || len(assign.Rhs) != 1 {
			return true
		}
		left, isField := assign.Lhs[0].(*ast.SelectorExpr)
		list, isList := assign.Rhs[0].(*ast.CompositeLit)
		if !isField || !isList {
			return true
		}
		if x, isIdent := left.X.(*ast.Ident); !isIdent || x.Name != "order" {
			return true
		}
		for _, elem := range list.Elts {
			lit, ok := elem.(*ast.BasicLit)
			if !ok {
				t.Errorf("stage %d of order.%s cannot be read: write a literal name", len(all), left.Sel.Name)
				continue
			}
			all = append(all, left.Sel.Name+"."+strings.Trim(lit.Value, `"`))
		}
		return true
	})
	return all
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
	source, err := os.ReadFile("../../gateway/features.go")
	if err != nil {
		t.Fatal(err)
	}
	got := stages(t, source)
	for _, row := range layering.Orders() {
		for _, fault := range broken(row, got) {
			t.Errorf("gateway/features.go: %s", fault)
		}
	}
}

// The reader and the judge of order themselves.
func TestOrderIsRead(t *testing.T) {
	t.Parallel()
	got := stages(t, []byte(`package gateway
func f() {
	order.Head = []string{"Size", "Count"}
	order.Call = []string{"Repeats", "Judge", "Size"}
	other.Call = []string{"Share"}
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
