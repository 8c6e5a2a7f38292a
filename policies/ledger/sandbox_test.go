package ledger_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// sandboxAt are the amounts of a sandbox with a rate, in micro-dollars per hour, and a lifetime of an hour.
func sandboxAt(rate int64) ledger.Amounts {
	return ledger.Amounts{ledger.Burn: rate, ledger.Bounded: rate, ledger.Cost: rate, ledger.Sandboxes: 1}
}

// The cost of a sandbox is the ceiling until the platform states its rate, which holds from its creation on, and ends when the sandbox
// ended, however late the reconciler finds that out. A list that lags behind does not bring an ended sandbox back. Nothing of this is drift.
func TestSandboxesFollowThePlatformsClocks(t *testing.T) {
	for _, tt := range []struct {
		name string
		// found is what a GET of the sandbox finds 50 minutes after its creation.
		found   *ledger.PlatformResource
		accrued int64
	}{
		{"it lives", &ledger.PlatformResource{Amounts: sandboxAt(36_000), Priced: true}, 30_000},
		{"it has ended", &ledger.PlatformResource{Priced: true, Ended: sandboxBegan.Add(20 * time.Minute)}, 12_000},
		{"its record is gone after its lifetime", nil, 24_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newReconciled(t)
			r.now = sandboxBegan.Add(time.Second)
			about := ledger.Metadata{EndAt: sandboxBegan.Add(40 * time.Minute).Unix()}
			_, err := r.Reserve(t.Context(), org, &ledger.Reservation{
				Hold: "h", Kind: "sandbox", Owner: owner, After: sandboxAt(100_000), Metadata: about, Limits: make([][ledger.Ceilings]int64, 3),
			})
			if err != nil {
				t.Fatal(err)
			}
			r.settle(ledger.Settlement{Hold: "h", End: ledger.Commit, Kind: "sandbox", Resource: "s", Amounts: sandboxAt(100_000), From: sandboxBegan})
			listed := ledger.PlatformResource{Kind: operation.KindSandbox, ID: "s", Amounts: sandboxAt(36_000), Priced: true, Started: sandboxBegan}
			r.now, r.found = sandboxBegan.Add(10*time.Minute), []ledger.PlatformResource{listed}
			r.passes(t)
			r.now, r.found = sandboxBegan.Add(50*time.Minute), nil
			if f := tt.found; f != nil {
				f.Kind, f.ID, f.Started = operation.KindSandbox, "s", sandboxBegan
				r.hidden = []ledger.PlatformResource{*f}
			}
			r.passes(t)
			r.found = []ledger.PlatformResource{listed}
			if tt.found == nil || tt.found.Ended.IsZero() {
				r.found = nil
			}
			r.passes(t)
			state, err := r.Show(t.Context(), org)
			if err != nil {
				t.Fatal(err)
			}
			ended := tt.found == nil || !tt.found.Ended.IsZero()
			for _, b := range state.Balances {
				if b.Day != tt.accrued || (b.Committed == ledger.Amounts{}) != ended {
					t.Errorf("%s: %d accrued, %v committed, want %d accrued, and nothing committed: %t", b.Scope, b.Day, b.Committed, tt.accrued, ended)
				}
			}
		})
	}
}

var sandboxBegan = time.Date(2027, 3, 14, 12, 0, 0, 0, time.UTC) //nolint:gochecknoglobals // read only

// passes makes a pass that finds no drift.
func (r *reconciled) passes(t *testing.T) {
	t.Helper()
	if err := r.pass(r.Memory); err != nil {
		t.Fatal(err)
	}
	if n := len(r.report.Drifted) + len(r.report.Unmanaged); n > 0 {
		t.Errorf("%+v is drift", r.report)
	}
}

// A response states the rate of a sandbox once, and cannot bring one back that has ended.
func TestObserve(t *testing.T) {
	r := newReconciled(t)
	var log strings.Builder
	l := &ledger.Ledger{Store: r.Memory, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	observe := func(a ledger.Amounts, ended time.Time) {
		t.Helper()
		if err := l.Observe(t.Context(), org, &ledger.PlatformResource{ID: "s", Amounts: a, Priced: true, Started: sandboxBegan, Ended: ended}, 30_000); err != nil {
			t.Fatal(err)
		}
	}
	observe(sandboxAt(36_000), time.Time{}) // it is not in the ledger
	r.settle(ledger.Settlement{Hold: "lost", End: ledger.Commit, Kind: "sandbox", Resource: "s", Owner: owner, Amounts: sandboxAt(100_000), From: sandboxBegan})
	r.now = sandboxBegan.Add(30 * time.Minute)
	observe(sandboxAt(36_000), time.Time{})
	observe(sandboxAt(36_000), time.Time{})
	observe(ledger.Amounts{}, sandboxBegan.Add(20*time.Minute))
	observe(sandboxAt(36_000), time.Time{}) // a response that was late
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings of the rate above the ceiling, want one:\n%s", n, log.String())
	}
	state, err := r.Show(t.Context(), org)
	if err != nil || len(state.Resources) != 1 || state.Resources[0].Amounts != (ledger.Amounts{}) || state.Resources[0].Owner != owner {
		t.Fatalf("%+v (%v), want one that has ended", state.Resources, err)
	}
	for _, b := range state.Balances {
		if b.Day != 12_000 || b.Committed != (ledger.Amounts{}) {
			t.Errorf("%s: %d accrued, %v committed, want 20 minutes", b.Scope, b.Day, b.Committed)
		}
	}
}

// A sandbox that does not say when it ended has ended when a response shows that.
func TestObserveAnEndWithoutATime(t *testing.T) {
	r := newReconciled(t)
	l := &ledger.Ledger{Store: r.Memory}
	r.settle(ledger.Settlement{Hold: "lost", End: ledger.Commit, Kind: "sandbox", Resource: "s", Owner: owner, Amounts: sandboxAt(36_000), From: sandboxBegan})
	r.now = sandboxBegan.Add(30 * time.Minute)
	if err := l.Observe(t.Context(), org, &ledger.PlatformResource{ID: "s", Priced: true, Started: sandboxBegan}, 0); err != nil {
		t.Fatal(err)
	}
	state, err := r.Show(t.Context(), org)
	if err != nil || state.Balances[0].Day != 18_000 || state.Balances[0].Committed != (ledger.Amounts{}) {
		t.Errorf("%+v (%v), want the cost of 30 minutes", state.Balances, err)
	}
}

// The outlook has the remaining cost of a sandbox once, and not its rate until the end of the month.
func TestOutlookOfSandboxes(t *testing.T) {
	r := newReconciled(t)
	r.now = sandboxBegan
	r.settle(ledger.Settlement{Hold: "lost", End: ledger.Commit, Kind: "sandbox", Resource: "s", Owner: owner, Amounts: sandboxAt(36_000), From: sandboxBegan})
	state, err := r.Show(t.Context(), org)
	if err != nil {
		t.Fatal(err)
	}
	h := &ledger.History{Store: r.Memory, Retention: ledger.DefaultConfig().History}
	plan := &ledger.Plan{Org: ledger.Budget{PerMonth: 100_000}}
	outlooks, err := h.Outlooks(t.Context(), org, plan, &state)
	if err != nil || len(outlooks) == 0 {
		t.Fatalf("%v (%v)", outlooks, err)
	}
	for _, o := range outlooks {
		if o.Burn != 36_000 || o.Day.Expected != 36_000 || o.Month != o.Day {
			t.Errorf("%s: %+v, want 36000 by the end of the day and of the month", o.Scope, o)
		}
		for _, c := range o.Ceilings {
			if !c.ExhaustedAt.IsZero() {
				t.Errorf("%s is expected to be used up at %s", o.Scope, c.ExhaustedAt)
			}
			if c.Free != 100_000-36_000 {
				t.Errorf("%s: %d free at the end of the month, want the limit without the cost of the sandbox", o.Scope, c.Free)
			}
		}
	}
}
