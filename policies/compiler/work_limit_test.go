package compiler_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/tollgate-dev/tollgate/policies/compiler"
)

// The work of a run is bounded: what would take longer is left to the evaluation.
func TestWorkLimit(t *testing.T) {
	modules := ast.MustCompileModules(map[string]string{"test.rego": `package test
loops := {x | some x in input.list; some y in input.list; x == y + 1000}
given := {x | some x in input.list; contains(input.text, "ab")}
`})
	program, err := compiler.CompileProgram(t.Context(), modules, []string{"data.test.loops", "data.test.given"}, "", function)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		rule        string
		list, text  int
		wantToTell  bool
		description string
	}{
		{"loops", 100, 0, true, "10,000 rounds"},
		{"loops", 1000, 0, false, "a million rounds"},
		{"given", 10, 1 << 10, true, "10 KB given to a function"},
		{"given", 10, 1 << 20, false, "10 MB given to a function"},
	} {
		items := make([]string, tt.list)
		for i := range items {
			items[i] = fmt.Sprint(i)
		}
		input := ast.MustParseTerm(`{"list": [` + strings.Join(items, ",") + `], "text": "` + strings.Repeat("x", tt.text) + `"}`)
		for range 2 { // the next run begins anew
			run := program.Begin(input, nil)
			if _, sure := run.Value(program.Rule("test." + tt.rule)); sure != tt.wantToTell {
				t.Errorf("%s: the run can tell: %t, want %t", tt.description, sure, tt.wantToTell)
			}
			run.End()
		}
	}
}
