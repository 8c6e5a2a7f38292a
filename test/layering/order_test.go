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
			all = append(all, strings.ToLower(left.Sel.Name)+"/"+strings.Trim(lit.Value, `"`))
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
	order.Headers = []string{"limit size", "rate limit"}
	order.Call = []string{"idempotency", "evaluate policies", "limit size"}
	other.Call = []string{"fair share"}
}`))
	if want := []string{"headers/limit size", "headers/rate limit", "call/idempotency", "call/evaluate policies", "call/limit size"}; !slices.Equal(got, want) {
		t.Fatalf("stages %q, want %q", got, want)
	}
	for _, c := range []struct {
		name          string
		before, after string
		want          int
	}{
		{"kept", "call/idempotency", "call/evaluate policies", 0},
		{"turned round", "call/evaluate policies", "call/idempotency", 1},
		{"across parts", "headers/limit size", "call/limit size", 0},
		{"across parts, turned round", "call/limit size", "headers/limit size", 1},
		{"last", "call/*", "call/limit size", 0},
		{"not last", "call/*", "call/evaluate policies", 1},
		{"first", "call/idempotency", "call/*", 0},
		{"no such stage", "call/rate limit", "call/limit size", 1},
	} {
		row := layering.Order{Before: []string{c.before}, After: []string{c.after}}
		if faults := broken(row, got); len(faults) != c.want {
			t.Errorf("%s: %q, want %d", c.name, faults, c.want)
		}
	}
}
