package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// acting is a platform that fails or notes what it is asked for.
type acting struct {
	*reconciled

	acts    []string
	failing bool
}

func (a *acting) act(what, id string) error {
	if a.failing {
		return errors.New("502")
	}
	a.acts = append(a.acts, what+" "+id)
	return nil
}

// StopPod implements ledger.Platform.
func (a *acting) StopPod(_ context.Context, _, id string) (ledger.Amounts, error) {
	return stopped, a.act("stop", id)
}

// Delete implements ledger.Platform.
func (a *acting) Delete(_ context.Context, _ string, _ operation.Kind, id string) error {
	return a.act("terminate", id)
}

// Stopped implements ledger.Events.
func (a *acting) Stopped(_ context.Context, c *ledger.Cause, r *ledger.Record) {
	a.acts = append(a.acts, fmt.Sprint("reached ", r.ID, " ", c.Deleted))
}

// Pods are stopped and terminated at their deadlines: a failed attempt is repeated, and a stop is made once.
func TestDeadlines(t *testing.T) {
	r := &acting{reconciled: newReconciled(t), failing: true}
	r.Budgets = &ledger.Plan{}
	books := ledger.New(r.deps(r))
	start := r.now
	for id, about := range map[string]ledger.Metadata{
		"p1": {Operation: "createPod", StopAt: start.Add(time.Hour).Unix(), EndAt: start.Add(2 * time.Hour).Unix()},
		"p2": {Operation: "createPod"},
	} {
		r.found = append(r.found, ledger.PlatformResource{Kind: operation.KindPod, ID: id, Amounts: onePod, Priced: true})
		out, err := r.Reserve(t.Context(), org, &ledger.Reservation{Hold: id, Kind: string(operation.KindPod), Owner: owner, After: onePod, Metadata: about, Limits: make([][ledger.Ceilings]int64, 3)})
		if err != nil || out.Status != ledger.Admitted {
			t.Fatal(out, err)
		}
		r.settle(ledger.Settlement{End: ledger.Commit, Hold: id, Resource: id, Amounts: onePod, Metadata: about})
	}
	pass := func(at time.Duration, wantErr bool, next time.Duration, want ...string) {
		t.Helper()
		r.now, r.acts = start.Add(at), nil
		if err := r.passOf(books); (err != nil) != wantErr {
			t.Fatalf("after %s: error %v", at, err)
		}
		if diff := cmp.Diff(want, r.acts); diff != "" || r.report.NextDeadline != next {
			t.Errorf("after %s: next deadline in %s, want %s; acts (-want +got):\n%s", at, r.report.NextDeadline, next, diff)
		}
	}
	pass(59*time.Minute, false, time.Minute)
	pass(time.Hour, true, time.Hour)
	r.failing = false
	pass(61*time.Minute, false, 59*time.Minute, "stop p1", "reached p1 false")
	for i := range r.found { // its owner starts it again
		if r.found[i].ID == "p1" {
			r.found[i].Amounts = onePod
		}
	}
	pass(90*time.Minute, false, 30*time.Minute)
	pass(2*time.Hour, false, 0, "terminate p1", "reached p1 true")
	if owners, _, err := r.Owners(t.Context(), org, []string{"p1", "p2"}); err != nil || owners[0] != (ledger.Owner{}) || owners[1] != owner {
		t.Errorf("owners are %v, error %v, want p2 alone in the ledger", owners, err)
	}
}
