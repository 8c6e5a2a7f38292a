package policies_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/compiler"
)

// Each policy reads the members it judges and nothing else, so that its verdict on a create
// is remembered while a member changes that it does not judge.
func TestPoliciesReadWhatTheyJudge(t *testing.T) {
	wide := map[string][]string{ // the members each reads that are new in every call
		"env_rules":     {"resource.after"}, // credentials may be anywhere
		"lifetime":      {"time.ns"},
		"working_hours": {"time.ns"},
	}
	lib := compiler.Library()
	for _, p := range lib {
		reads, _ := newEngine(t, policies.Config{Policies: []policies.Entry{{Policy: p.Name, Params: p.Example}}}).Reads("acme")
		var got []string
		for _, path := range reads {
			switch {
			case slices.Contains([]string{"", "request", "request.body", "request.path", "request.params", "resource", "resource.after", "resource.current", "caller", "cost", "spend"}, path),
				strings.HasPrefix(path, "time"):
				got = append(got, path)
			}
		}
		if diff := cmp.Diff(wide[p.Name], got); diff != "" {
			t.Errorf("%s reads more than it judges (-want +got):\n%s", p.Name, diff)
		}
	}
}

// TestExamplesCompile switches every policy on with the example of its
// METADATA.
func TestExamplesCompile(t *testing.T) {
	lib := compiler.Library()
	for _, p := range lib {
		t.Run(p.Name, func(t *testing.T) {
			if len(p.Example) == 0 {
				t.Error("no example in the METADATA")
			}
			cfg := policies.Config{Policies: []policies.Entry{{Policy: p.Name, Params: p.Example}}}
			if err := policies.Validate(&cfg); err != nil {
				t.Error(err)
			}
			newEngine(t, cfg)
		})
	}
}
