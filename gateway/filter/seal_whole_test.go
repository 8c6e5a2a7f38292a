package filter

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/policies"
)

func TestWholeSaysAllOfWhatCosts(t *testing.T) {
	api, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	n := func(s string) json.Number { return json.Number(s) }
	gpus := map[string]any{
		"workers": map[string]any{"min": n("0"), "max": n("2"), "idleTimeout": n("10")},
		"gpu":     map[string]any{"count": n("1"), "pools": []any{"ADA_24"}, "excludedTypes": []any{}, "minCudaVersion": nil},
		"name":    "e", "createdAt": "2026-11-21T10:00:00Z",
	}
	cpus := map[string]any{
		"workers": map[string]any{"min": n("0"), "max": n("2")},
		"cpu":     []any{map[string]any{"id": "cpu3c", "vcpuCount": n("2"), "memory": n("4")}},
	}
	for name, tc := range map[string]struct {
		op                string
		body, after, want map[string]any
	}{
		"a name costs nothing": {"updateEndpoint", map[string]any{"name": "x"}, gpus, map[string]any{"name": "x"}},
		"another operation":    {"updatePod", map[string]any{"name": "x"}, gpus, map[string]any{"name": "x"}},
		"workers bring the GPUs": {
			"updateEndpoint",
			map[string]any{"workers": map[string]any{"max": n("2")}},
			gpus,
			map[string]any{
				"workers": map[string]any{"min": n("0"), "max": n("2")},
				"gpu":     map[string]any{"count": n("1"), "pools": []any{"ADA_24"}, "excludedTypes": []any{}},
			},
		},
		"GPUs bring the workers": {
			"updateEndpoint",
			map[string]any{"gpu": map[string]any{"count": n("1"), "minCudaVersion": ""}},
			gpus,
			map[string]any{
				"workers": map[string]any{"min": n("0"), "max": n("2")},
				"gpu":     map[string]any{"count": n("1"), "pools": []any{"ADA_24"}, "excludedTypes": []any{}, "minCudaVersion": ""},
			},
		},
		"workers bring the CPUs": {
			"updateEndpoint",
			map[string]any{"workers": map[string]any{"max": n("2")}},
			cpus,
			map[string]any{
				"workers": map[string]any{"min": n("0"), "max": n("2")},
				"cpu":     []any{map[string]any{"id": "cpu3c", "vcpuCount": n("2")}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ex := &Exchange{Operation: api.Operation(tc.op), Body: Body{Doc: tc.body, HasDoc: true}, Evaluation: Evaluation{Input: &policies.Input{Resource: policies.Resource{After: tc.after}}}}
			if err := seal(ex); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(any(tc.want), ex.Body.Doc); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}
