package policies_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/load"
)

// TestExamplesCompile switches every policy on with the example of its
// METADATA.
func TestExamplesCompile(t *testing.T) {
	lib, err := load.Library()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range lib {
		t.Run(p.Name, func(t *testing.T) {
			if len(p.Example) == 0 {
				t.Error("no example in the METADATA")
			}
			cfg := policies.Config{Policies: []policies.Entry{{Policy: p.Name, Params: p.Example}}}
			if err := cfg.Validate(); err != nil {
				t.Error(err)
			}
			newEngine(t, cfg)
		})
	}
}
