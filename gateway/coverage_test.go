package gateway_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/schema"
)

func TestEveryOperationIsHeld(t *testing.T) {
	api, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]string{
		"createPod": "body", "updatePod": "merged", "podAction": "as it is", "deletePod": "none", "listPods": "none",
		"updateEndpoint": "merged", "createCluster": "body", "updateCluster": "merged", "updateTemplate": "merged",
		"updateNetworkVolume": "merged", "updateSshKeys": "body",
	}
	prices := map[string]string{"createPod": "pod", "createEndpoint": "endpoint", "createCluster": "cluster", "podAction": "pod_action", "listPods": "free"}
	list := gateway.CoverageOf(api.Operations())
	if len(list) != len(api.Operations()) {
		t.Errorf("%d rows for %d operations", len(list), len(api.Operations()))
	}
	for _, c := range list {
		if len(c.Gaps) > 0 {
			t.Errorf("%s: %v", c.Operation, c.Gaps)
		}
		if want, ok := states[c.Operation]; ok && c.State != want {
			t.Errorf("%s is judged on %q, want %q", c.Operation, c.State, want)
		}
		if want, ok := prices[c.Operation]; ok && c.Price != want {
			t.Errorf("%s is priced by %q, want %q", c.Operation, c.Price, want)
		}
		// What sets or changes something must be judged on more than its name.
		if slices.Contains([]string{"create", "update", "start"}, c.Verb) && c.State == "none" {
			t.Errorf("%s: %s without a state", c.Operation, c.Verb)
		}
	}
}

// An operation that something is missing for is found, whatever it is.
func TestGapsAreFound(t *testing.T) {
	api, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	alter := func(id string, how func(*schema.Operation)) schema.Operation {
		op := *api.Operation(id)
		how(&op)
		return op
	}
	for name, tc := range map[string]struct {
		op   schema.Operation
		want []string
	}{
		"nobody knows it":       {alter("createPod", func(op *schema.Operation) { op.ID = "createThing" }), []string{"no price rule", "no policy can judge it"}},
		"a read that changes":   {alter("listPods", func(op *schema.Operation) { op.Mutates = true }), []string{"it changes something, and policies take it for a read"}},
		"nothing to merge with": {alter("updatePod", func(*schema.Operation) {}), []string{"no operation reads the object it changes"}},
	} {
		list := gateway.CoverageOf([]*schema.Operation{&tc.op})
		if diff := cmp.Diff(tc.want, list[0].Gaps); diff != "" {
			t.Errorf("%s: gaps (-want +got):\n%s", name, diff)
		}
	}
}
