package compiler_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// Entries survive their way through YAML with all settings; the text has no settings with their zero value.
func TestEntriesYAML(t *testing.T) {
	t.Parallel()
	want := []policyconfig.Entry{
		{Policy: "gpu_allow_list", Params: map[string]any{"by_offer": map[string]any{"SERVERLESS": []any{"NVIDIA L40"}}, "gpus": []any{"NVIDIA L4"}}},
		{
			Policy: "gpu_allow_list", Mode: policyconfig.ModeWarn, Teams: []string{"ml"}, ExceptTeams: []string{"true"}, Roles: []string{"a"},
			ExceptRoles: []string{"b"}, Ratchet: true, Approvable: true, Params: map[string]any{"max": 4},
		},
	}
	text := compiler.EntriesYAML(want)
	var got struct{ Policies []policyconfig.Entry }
	if err := yaml.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Policies); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	text = compiler.EntriesYAML([]policyconfig.Entry{{Policy: "disk"}})
	if want := "policies:\n  - policy: disk\n"; text != want {
		t.Errorf("%q, want %q", text, want)
	}
}
