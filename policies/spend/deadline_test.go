package spend_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// Pods are stopped and terminated at their deadlines: a failed attempt is repeated, and a stop is made once.
func TestDeadlines(t *testing.T) {
	r := newReconciled(t)
	var acts []string
	failing := true
	act := func(what, id string) error {
		if failing {
			return errors.New("502")
		}
		acts = append(acts, what+" "+id)
		return nil
	}
	e := &spend.Enforcer{
		Notices: r, Interval: time.Minute, Plan: func(string) *spend.Plan { return &spend.Plan{} },
		Stop:      func(_ context.Context, _, id string) (spend.Amounts, error) { return stopped, act("stop", id) },
		Terminate: func(_ context.Context, _, id string) error { return act("terminate", id) },
		Deadline: func(_ context.Context, _ string, r spend.Record, terminated bool) {
			acts = append(acts, fmt.Sprint("reached ", r.ID, " ", terminated))
		},
	}
	start := r.now
	for id, about := range map[string]spend.About{
		"p1": {Operation: "createPod", StopAt: start.Add(time.Hour).Unix(), EndAt: start.Add(2 * time.Hour).Unix()},
		"p2": {Operation: "createPod"},
	} {
		r.found = append(r.found, spend.Found{Kind: operation.KindPod, ID: id, Amounts: onePod, Priced: true})
		out, err := r.Reserve(t.Context(), org, &spend.Reservation{Hold: id, Kind: string(operation.KindPod), Owner: owner, After: onePod, About: about, Limits: make([][spend.Ceilings]int64, 3)})
		if err != nil || out.Status != spend.Admitted {
			t.Fatal(out, err)
		}
		r.settle(spend.Settlement{End: spend.Commit, Hold: id, Resource: id, Amounts: onePod, About: about})
	}
	pass := func(at time.Duration, wantErr bool, next time.Duration, want ...string) {
		t.Helper()
		r.now, acts = start.Add(at), nil
		if err := r.passWith(e); (err != nil) != wantErr {
			t.Fatalf("after %s: error %v", at, err)
		}
		if diff := cmp.Diff(want, acts); diff != "" || r.report.NextDeadline != next {
			t.Errorf("after %s: next deadline in %s, want %s; acts (-want +got):\n%s", at, r.report.NextDeadline, next, diff)
		}
	}
	pass(59*time.Minute, false, time.Minute)
	pass(time.Hour, true, time.Hour)
	failing = false
	pass(61*time.Minute, false, 59*time.Minute, "stop p1", "reached p1 false")
	for i := range r.found { // its owner starts it again
		if r.found[i].ID == "p1" {
			r.found[i].Amounts = onePod
		}
	}
	pass(90*time.Minute, false, 30*time.Minute)
	pass(2*time.Hour, false, 0, "terminate p1", "reached p1 true")
	if owners, _, err := r.Owners(t.Context(), org, []string{"p1", "p2"}); err != nil || owners[0] != (spend.Owner{}) || owners[1] != owner {
		t.Errorf("owners are %v, error %v, want p2 alone in the ledger", owners, err)
	}
}
