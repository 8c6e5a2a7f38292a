package operator_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/policies/operation"
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
	prices := map[string]string{"createPod": "pod", "createEndpoint": "endpoint", "createCluster": "cluster", "podAction": "pod", "listPods": "free"}
	runs, err := schema.LoadRun()
	if err != nil {
		t.Fatal(err)
	}
	described := slices.Concat(api.Operations(), runs.Operations())
	list := operator.CoverageOf(described)
	if len(list) != len(described) {
		t.Errorf("%d rows for %d operations", len(list), len(described))
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

// Whatever an operation lacks is found.
func TestGapsAreFound(t *testing.T) {
	api, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	rename := func(r *operation.Spec) { r.ID = "updateThing" }
	for name, tc := range map[string]struct {
		of   string // the operation that is altered, in the description or in its row
		api  func(*schema.Operation)
		row  func(*operation.Spec)
		gaps string // the operation that has them then
		want []string
	}{
		"no row":         {of: "updatePod", row: rename, gaps: "updatePod", want: []string{"no spec in policies/operation"}},
		"no description": {of: "updatePod", row: rename, gaps: "updateThing", want: []string{"not described by the API"}},
		"no rule": {
			of: "updatePod", api: func(op *schema.Operation) { op.ID = "updateThing" }, row: rename,
			gaps: "updateThing", want: []string{"no rule computes its resulting state"},
		},
		"a read that changes": {
			of: "listPods", api: func(op *schema.Operation) { op.Mutates = true },
			gaps: "listPods", want: []string{"changes something, but its spec has the verb read"},
		},
		"an object that nothing reads": {
			of: "updatePod", row: func(r *operation.Spec) { r.ReadOperation = "getThing" },
			gaps: "updatePod", want: []string{"no operation reads its resource"},
		},
		"the object of another path": {
			of: "updatePod", row: func(r *operation.Spec) { r.ReadOperation = "getEndpoint" },
			gaps: "updatePod", want: []string{"no operation reads its resource"},
		},
	} {
		described, rows := api.Operations(), operation.All()
		for i, op := range described {
			if altered := *op; op.ID == tc.of && tc.api != nil {
				tc.api(&altered)
				described[i] = &altered
			}
		}
		for i := range rows {
			if rows[i].ID == tc.of && tc.row != nil {
				tc.row(&rows[i])
			}
		}
		var got []string
		for _, c := range operator.Compare(described, rows) {
			if c.Operation == tc.gaps {
				got = c.Gaps
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: gaps (-want +got):\n%s", name, diff)
		}
	}
}
