package policies_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// between lists the texts of the manual that stand between a begin and the next end.
func between(t *testing.T, begin, end string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "policies.md"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, part := range strings.Split(string(text), begin)[1:] {
		block, _, _ := strings.Cut(part, end)
		out = append(out, block)
	}
	if len(out) == 0 {
		t.Fatalf("the manual has no %q", begin)
	}
	return out
}

// TestManualYAML: the manual's examples can be configured.
func TestManualYAML(t *testing.T) {
	for _, block := range between(t, "```yaml\n", "```") {
		var cfg policies.Config
		d := yaml.NewDecoder(strings.NewReader(block))
		d.KnownFields(true)
		if err := d.Decode(&cfg); err != nil {
			t.Errorf("%v\n%s", err, block)
			continue
		}
		if err := policies.Validate(&cfg); err != nil {
			t.Errorf("%v\n%s", err, block)
		}
	}
}

// TestManualRego: the manual's examples can be loaded, and work.
func TestManualRego(t *testing.T) {
	for _, block := range between(t, "nights.rego <<'EOF'\n", "\nEOF\n") {
		limits := policyconfig.DefaultLimits()
		limits.Deadline = 1e10
		e, err := ownEngine(t, limits, block)
		if err != nil {
			t.Errorf("%v\n%s", err, block)
			continue
		}
		in := call(t, "createPod", `{"gpu":{"id":"NVIDIA L4","count":2}}`)
		in.Time = in.Time.Add(-10 * 60 * 60 * 1e9) // two in the morning
		d, err := e.Decide(t.Context(), "acme", in)
		if err != nil || len(d.Deny) != 1 || len(d.Warn) != 1 || len(d.Mutate) != 1 {
			t.Errorf("got %+v, %v; want one denial, one warning, one change", d, err)
		}
	}
}
