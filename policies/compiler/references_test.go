package compiler

import (
	"testing"
)

// Own Rego is compiled beside the library when it may refer to it.
func TestRefersToLibrary(t *testing.T) {
	for text, want := range map[string]bool{
		"deny contains 1 if input.request.operation == \"x\"":       false,
		"deny contains 1 if data.limits[input.caller.team] > 1":     false,
		"deny contains 1 if data.policies.other.deny[\"x\"]":        false,
		"deny contains 1 if data.tollgate.value.number(1)":          true,
		"deny contains 1 if data[_].y":                              true,
		"deny contains 1 if walk(data, [[\"a\"], _])":               true,
		"deny contains 1 if data[input.request.operation]":          true,
		"deny contains 1 if [1 | y := data.tollgate[_]; y]":         true,
		"import data.tollgate.value\n\ndeny contains 1 if value.x":  true,
		"import data.limits as value\n\ndeny contains 1 if value.x": false,
	} {
		o, err := Parse("acme", "digest", map[string]string{"mine.rego": "package policies.mine\n\n" + text + "\n"}, nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := o.refersToLibrary(); got != want {
			t.Errorf("%s: refers to the library %t, want %t", text, got, want)
		}
	}
}
