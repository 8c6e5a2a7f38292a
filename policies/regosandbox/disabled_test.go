package regosandbox

import (
	"path"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Each function that Rego has and policies have not is named with what to use, by one row,
// and each row is of some.
func TestDisabledFunctions(t *testing.T) {
	allowed := make(map[string]bool)
	for _, b := range Capabilities().Builtins {
		allowed[b.Name] = true
	}
	used := make(map[string]bool)
	for _, b := range ast.CapabilitiesForThisVersion().Builtins {
		text, off := Explain(b.Name)
		if off == allowed[b.Name] {
			t.Errorf("%s: allowed %v, switched off %v", b.Name, allowed[b.Name], off)
		}
		if !off {
			continue
		}
		if !strings.Contains(text, ": use ") {
			t.Errorf("%s: %s, want what to use", b.Name, text)
		}
		for _, row := range DisabledFunctions() {
			for _, pattern := range row.Names {
				if matched, err := path.Match(pattern, b.Name); err != nil {
					t.Errorf("%s: %v", pattern, err)
				} else if matched {
					used[pattern] = true
				}
			}
		}
	}
	for _, row := range DisabledFunctions() {
		for _, pattern := range row.Names {
			if !used[pattern] {
				t.Errorf("%s names no function that is disabled", pattern)
			}
		}
	}
	if text, off := Explain("no.such"); off {
		t.Errorf("a function that Rego does not have: %s", text)
	}
}
