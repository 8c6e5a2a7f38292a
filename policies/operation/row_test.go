package operation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

func TestRowsAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range operation.All() {
		if r.Kind == "" || r.Verb == "" || r.Price == "" {
			t.Errorf("%s: kind %q, verb %q, price %q", r.ID, r.Kind, r.Verb, r.Price)
		}
		if seen[r.ID] {
			t.Errorf("%s has two rows", r.ID)
		}
		seen[r.ID] = true
		got, ok := operation.Lookup(r.ID)
		if diff := cmp.Diff(r, got); !ok || diff != "" {
			t.Errorf("Of(%s), %v (-want +got):\n%s", r.ID, ok, diff)
		}
		if r.ReadOperation == "" {
			continue
		}
		if get, ok := operation.Lookup(r.ReadOperation); !ok || get.Kind != r.Kind || get.Verb != operation.VerbRead {
			t.Errorf("%s: its object is read by %s, which is %s:%s", r.ID, r.ReadOperation, get.Kind, get.Verb)
		}
	}
	if _, ok := operation.Lookup("createThing"); ok {
		t.Error("createThing has a row")
	}
}

func TestVerbsOfActions(t *testing.T) {
	action, _ := operation.Lookup("podAction")
	update, _ := operation.Lookup("updatePod")
	for _, tc := range []struct {
		row  operation.Spec
		body any
		want operation.Verb
	}{
		{action, map[string]any{"action": "start"}, operation.VerbStart},
		{action, map[string]any{"action": "restart"}, operation.VerbRestart},
		{action, map[string]any{"action": "stop"}, operation.VerbStop},
		{action, map[string]any{"action": "terminate"}, operation.VerbDelete},
		{action, map[string]any{"action": "explode"}, ""},
		{action, map[string]any{"action": 1}, ""},
		{action, nil, ""},
		{update, map[string]any{"action": "stop"}, operation.VerbUpdate},
	} {
		if got := tc.row.EffectiveVerb(tc.body); got != tc.want {
			t.Errorf("%s with %v does %q, want %q", tc.row.ID, tc.body, got, tc.want)
		}
	}
}
