package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Fixture is a store under test.
type Fixture struct {
	// Store is empty.
	Store ratelimit.Store
	// SetTime moves the store's clock. Nil: the clock cannot be moved, and the
	// cases that need that are left out.
	SetTime func(time.Time)
}

// Test runs the suite; newFixture is called once for each case.
func Test(t *testing.T, newFixture func(t *testing.T) Fixture) {
	for _, tt := range []struct {
		name string
		run  func(*harness)
	}{
		{"all windows of all scopes or nothing", testAllOrNothing},
		{"as many identical calls as fit", testCalls},
		{"scopes that a call takes more from", testScopeCosts},
		{"operations in order", testOrder},
		{"organisations are apart", testOrganisations},
		{"odd identifiers", testIdentifiers},
		{"quota changes hold at once", testQuotaChange},
		{"unlimited windows are counted", testUnlimited},
		{"large numbers", testLarge},
		{"draws", testDraws},
		{"draws shrink near the end", testDrawsShrink},
		{"refused draw grants nothing", testDrawRefused},
		{"returned permits", testReturn},
		{"restored counts", testRestore},
		{"debts are charged once", testDebts},
		{"debts of many windows", testDebtWindows},
		{"blind debts", testBlindDebts},
		{"reset", testReset},
		{"show", testShow},
		{"leases of the living", testLeases},
		{"beat", testBeat},
		{"concurrent calls", testConcurrent},
		{"windows turn", testTurn},
		{"clock steps back", testStepBack},
		{"late return", testLateReturn},
		{"beat forgets", testBeatForgets},
		{"model", testModel},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := &harness{T: t, Fixture: newFixture(t), org: "org_a"}
			h.begin()
			tt.run(h)
		})
	}
}

// start is where movable clocks begin: 20 s into a minute, 40 minutes into an
// hour, 22 hours into a day.
func start() time.Time { return time.Date(2027, 3, 14, 22, 40, 20, 0, time.UTC) }

// margin is what must be left of the minute when a case begins on a clock that
// cannot be moved, so that no window turns meanwhile.
const margin = 5 * time.Second

// harness is one case under way.
type harness struct {
	*testing.T
	Fixture
	org string
}

// begin sets the clock, or waits for a better moment if it cannot.
func (h *harness) begin() {
	h.Helper()
	if h.SetTime != nil {
		h.SetTime(start())
		return
	}
	snap := h.show(h.org)
	left := time.Minute - time.Duration(snap.Now%time.Minute.Milliseconds())*time.Millisecond
	if left > margin {
		return
	}
	turned := time.NewTimer(left + 10*time.Millisecond)
	defer turned.Stop()
	<-turned.C
}

// movable skips the case if the clock cannot be moved.
func (h *harness) movable() {
	h.Helper()
	if h.SetTime == nil {
		h.Skip("the clock of this store cannot be moved")
	}
}

// apply runs ops and returns the store's clock.
func (h *harness) apply(ops ...ratelimit.Op) int64 {
	h.Helper()
	now, err := h.Store.Apply(h.Context(), ops)
	if err != nil {
		h.Fatalf("Apply: %v", err)
	}
	return now
}

// take runs calls identical calls of one unit and returns how many passed.
func (h *harness) take(calls int64, scopes ...ratelimit.Scope) int64 {
	h.Helper()
	ops := []ratelimit.Op{{Org: h.org, Scopes: scopes, Calls: calls, Cost: 1}}
	h.apply(ops...)
	return ops[0].Admitted
}

// counts returns the units charged to s, without charging: it asks for more than
// any window can hold.
func (h *harness) counts(s ratelimit.Scope) [ratelimit.Windows]int64 {
	h.Helper()
	s.Limit = ratelimit.Limit{Minute: 1, Hour: 1, Day: 1}
	ops := []ratelimit.Op{{Org: h.org, Scopes: []ratelimit.Scope{s}, Calls: 1, Cost: ratelimit.MaxCost}}
	h.apply(ops...)
	if ops[0].Admitted != 0 {
		h.Fatalf("a call of cost %d passed a quota of 1", ratelimit.MaxCost)
	}
	return ops[0].After[0].Count
}

func (h *harness) adjust(adjustments ...ratelimit.Adjustment) {
	h.Helper()
	if err := h.Store.Adjust(h.Context(), h.org, adjustments); err != nil {
		h.Fatalf("Adjust: %v", err)
	}
}

func (h *harness) show(org string) ratelimit.Snapshot {
	h.Helper()
	snap, err := h.Store.Snapshot(h.Context(), org)
	if err != nil {
		h.Fatalf("Show: %v", err)
	}
	return snap
}

func (h *harness) reset(ref ratelimit.Ref) {
	h.Helper()
	if err := h.Store.Reset(h.Context(), h.org, ref); err != nil {
		h.Fatalf("Reset: %v", err)
	}
}

func (h *harness) want(what string, got, want any) {
	h.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		h.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// each is the same number for all windows.
func each(n int64) [ratelimit.Windows]int64 { return [ratelimit.Windows]int64{n, n, n} }

func key(id string, limit ratelimit.Limit) ratelimit.Scope {
	return ratelimit.Scope{Kind: ratelimit.KindKey, ID: id, Limit: limit}
}

func team(id string, limit ratelimit.Limit) ratelimit.Scope {
	return ratelimit.Scope{Kind: ratelimit.KindTeam, ID: id, Limit: limit}
}

func org(id string, limit ratelimit.Limit) ratelimit.Scope {
	return ratelimit.Scope{Kind: ratelimit.KindOrg, ID: id, Limit: limit}
}

func perMinute(n int64) ratelimit.Limit { return ratelimit.Limit{Minute: n} }

// background is for goroutines that outlive the moment a case fails.
func (h *harness) background() context.Context { return context.WithoutCancel(h.Context()) }
