package callers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/reference"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// What remains of a window is its limit less what was counted of its own scope, and unknown if the store is away.
func TestLimitsOfACaller(t *testing.T) {
	t.Parallel()
	ann, bob := ratelimit.Ref{Kind: ratelimit.KindKey, ID: "ann"}, ratelimit.Ref{Kind: ratelimit.KindKey, ID: "bob"}
	counted := []ratelimit.WindowState{
		{Scope: bob, Window: "minute", Used: 1, Reset: time.Second},
		{Scope: ann, Window: "hour", Used: 2, Reset: time.Second},
		{Scope: ann, Window: "minute", Used: 4, Reset: 1500 * time.Millisecond},
		{Scope: ann, Window: "day", Used: 11, Reset: time.Hour},
	}
	for name, tt := range map[string]struct {
		ref    ratelimit.Ref
		window string
		known  bool
		want   reference.Limit
	}{
		"counted":     {ann, "minute", true, reference.Limit{Remaining: new(int64(6)), ResetSeconds: 2}},
		"over":        {ann, "day", true, reference.Limit{Remaining: new(int64(0)), ResetSeconds: 3600}},
		"not counted": {bob, "day", true, reference.Limit{Remaining: new(int64(10))}},
		"not known":   {ann, "minute", false, reference.Limit{}},
	} {
		tt.want.Scope, tt.want.Window, tt.want.Limit = tt.ref.String(), tt.window, 10
		if diff := cmp.Diff(tt.want, limitOf(tt.ref, tt.window, 10, counted, tt.known)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A caller is shown the policies that are for its team and roles, with the default mode by its name.
func TestPoliciesOfACaller(t *testing.T) {
	t.Parallel()
	a := &reference.Access{Team: "research", Roles: []string{"operator"}}
	addPolicies(a, []policies.Entry{
		{Policy: "gpu_allow_list"},
		{Policy: "own", Mode: policies.ModeWarn, Teams: []string{"research"}},
		{Policy: "others", Teams: []string{"ops"}},
		{Policy: "spared", ExceptTeams: []string{"research"}},
		{Policy: "admins", Roles: []string{"admin"}},
	})
	var got []string
	for _, p := range a.Policies {
		got = append(got, p.Name+" "+p.Mode)
		if (p.Title == "") != (p.Name == "own") {
			t.Errorf("%s has the title %q", p.Name, p.Title)
		}
	}
	if diff := cmp.Diff([]string{"gpu_allow_list enforce", "own warn"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
