package ledger_test

import (
	"context"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// The greatest cost of a job is held while it may go on, and counted in full afterwards;
// so is a hold of a gateway that has ended, when its call has had its time.
func TestJobsThatNothingIsHeardOf(t *testing.T) {
	r := newReconciled(t)
	costs := ledger.Amounts{ledger.Cost: 300_000}
	for _, hold := range []string{"job", "killed"} {
		if _, err := r.Reserve(t.Context(), org, &ledger.Reservation{
			Hold: hold, Kind: string(operation.KindJob), Owner: owner, After: costs, Limits: make([][ledger.Ceilings]int64, 3),
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Settle(t.Context(), org, &ledger.Settlement{Hold: "job", End: ledger.Open, NewID: "job e 1", ResolveWithin: time.Hour}); err != nil {
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
			if b.Day != step.accrued || b.Reserved[ledger.Cost] != step.reserved {
				t.Errorf("after %s %s has accrued %d and reserved %d, want %d and %d", step.after, b.Scope, b.Day, b.Reserved[ledger.Cost], step.accrued, step.reserved)
			}
		}
	}
}

// lostJobs is a platform that knows no job.
type lostJobs struct{ *reconciled }

// JobOutcome implements ledger.Platform.
func (lostJobs) JobOutcome(context.Context, string, *ledger.Hold) (*ledger.Settlement, error) {
	return nil, ledger.ErrNoJob
}

// The greatest cost of a job is counted once the platform has forgotten the job, as with a
// deleted endpoint. A new job may be unknown to the platform for a minute.
func TestJobsThatThePlatformForgot(t *testing.T) {
	r := newReconciled(t)
	if _, err := r.Reserve(t.Context(), org, &ledger.Reservation{
		Hold: "job", Kind: string(operation.KindJob), Owner: owner, After: ledger.Amounts{ledger.Cost: 300_000}, Limits: make([][ledger.Ceilings]int64, 3),
	}); err != nil {
		t.Fatal(err)
	}
	r.settle(ledger.Settlement{Hold: "job", End: ledger.Open, NewID: "job e 1", ResolveWithin: 24 * time.Hour})
	start := r.now
	for _, step := range []struct {
		after             time.Duration
		accrued, reserved int64
	}{{time.Second, 0, 300_000}, {50 * time.Second, 0, 300_000}, {70 * time.Second, 300_000, 0}} {
		r.now = start.Add(step.after)
		if err := r.passOf(ledger.New(r.deps(lostJobs{r}))); err != nil {
			t.Fatal(err)
		}
		state, err := r.Show(t.Context(), org)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range state.Balances {
			if b.Day != step.accrued || b.Reserved[ledger.Cost] != step.reserved {
				t.Errorf("after %s %s has accrued %d and reserved %d, want %d and %d", step.after, b.Scope, b.Day, b.Reserved[ledger.Cost], step.accrued, step.reserved)
			}
		}
	}
}
