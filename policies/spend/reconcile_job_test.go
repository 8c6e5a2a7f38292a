package spend_test

import (
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// The greatest cost of a job is held while it may go on, and counted in full afterwards;
// so is a hold of a gateway that has ended, when its call has had its time.
func TestJobsThatNothingIsHeardOf(t *testing.T) {
	r := newReconciled(t)
	costs := spend.Amounts{spend.Cost: 300_000}
	for _, hold := range []string{"job", "killed"} {
		if _, err := r.Reserve(t.Context(), org, &spend.Reservation{
			Hold: hold, Kind: string(operation.KindJob), Owner: owner, After: costs, Limits: make([][spend.Ceilings]int64, 3),
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Settle(t.Context(), org, &spend.Settlement{Hold: "job", End: spend.Open, NewID: "job e 1", ResolveWithin: time.Hour}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		after             time.Duration
		accrued, reserved int64
	}{{0, 0, 600_000}, {69 * time.Second, 0, 600_000}, {71 * time.Second, 300_000, 300_000}, {time.Hour, 600_000, 0}, {2 * time.Hour, 600_000, 0}} {
		r.now = time.Date(2027, 3, 14, 12, 0, 0, 0, time.UTC).Add(step.after)
		if err := r.pass(r); err != nil {
			t.Fatal(err)
		}
		state, err := r.Show(t.Context(), org)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range state.Balances {
			if b.Day != step.accrued || b.Reserved[spend.Cost] != step.reserved {
				t.Errorf("after %s %s has accrued %d and reserved %d, want %d and %d", step.after, b.Scope, b.Day, b.Reserved[spend.Cost], step.accrued, step.reserved)
			}
		}
	}
}
