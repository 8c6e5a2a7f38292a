package ratelimit

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Calls are merged only if they ask for the same.
func TestMergedCallsAreIdentical(t *testing.T) {
	key := []Scope{{Kind: KindKey, ID: "k", Limit: Limit{Minute: 10}}}
	b := &batch{}
	for _, op := range []Op{
		{Org: "o", Scopes: key, Calls: 1, Cost: 1},
		{Org: "o", Scopes: key, Calls: 1, Cost: 1},
		{Org: "o", Scopes: key, Calls: 1, Cost: 2},
		{Org: "p", Scopes: key, Calls: 1, Cost: 1},
		{Org: "o", Scopes: []Scope{{Kind: KindKey, ID: "k", Limit: Limit{Minute: 11}}}, Calls: 1, Cost: 1},
		{Org: "o", Scopes: key, Calls: 1, Cost: 1, Draws: []Draw{{}}},
	} {
		b.flights = append(b.flights, &flight{op: op})
	}
	b.merge()
	if diff := cmp.Diff([]int{0, 0, 1, 2, 3, 4}, b.opOf); diff != "" {
		t.Errorf("operations of the calls (-want +got):\n%s", diff)
	}
}

// After a cool-down one call asks a store that was away, alone.
func TestOneCallProbes(t *testing.T) {
	b := newBreaker(BreakerConfig{Failures: 2, Cooldown: time.Second, MaxCooldown: time.Minute})
	for range 2 {
		b.report(0, errors.New("away"))
	}
	if b.allow(time.Second - 1) {
		t.Error("a call was let through before the cool-down had passed")
	}
	after := time.Second + time.Second/4 + 1 // the longest cool-down
	allowed := 0
	for range 100 {
		if b.allow(after) {
			allowed++
		}
	}
	if allowed != 1 {
		t.Errorf("%d calls were let through after the cool-down, want one", allowed)
	}
	b.report(after, nil)
	if !b.allow(after) {
		t.Error("a call was not let through after the probe succeeded")
	}
}

// leased returns a limiter that holds n permits of every window of a scope, which
// end at the given time.
func leased(t *testing.T, n int64, end tick) (*Limiter, *account, Scope) {
	t.Helper()
	config := DefaultConfig()
	config.Mode = ModeLeased
	l, err := New(config, Deps{Store: unasked{}})
	if err != nil {
		t.Fatal(err)
	}
	scope := Scope{Kind: KindKey, ID: "k", Limit: Limit{Minute: 100}}
	s := l.book.shard("o")
	defer s.mu.Unlock()
	a := l.book.open(s, "o", scope.Ref(), 0)
	a.limit = scope.Limit
	a.state = *at(5, 50)
	a.held, a.ends = [Windows]int64{n, n, n}, [Windows]tick{end, end, end}
	return l, a, scope
}

// unasked is a store that no test here asks.
type unasked struct{ Store }

// Group implements Store.
func (unasked) Group(string) string { return "" }

// Permits are not spent, nor brought along to the store, in the last moments of
// their window.
func TestMarginOfPermits(t *testing.T) {
	const end = time.Minute
	l, a, scope := leased(t, 3, end)
	c := &call{org: "o", cost: 1, n: 1, limited: [MaxScopes]Scope{scope}}
	const margin = leaseMargin
	if l.spend(c, &[MaxScopes]*account{a}, end-margin) {
		t.Error("a permit was spent within the margin")
	}
	if !l.spend(c, &[MaxScopes]*account{a}, end-margin-1) {
		t.Error("no permit was spent before the margin")
	}
	// By the limiter's clock the window has long ended.
	l.base = l.base.Add(-2 * end)
	f := l.commit.get(c)
	l.draw(f)
	if got := f.drawn[0].units; got != [Windows]int64{} {
		t.Errorf("a call brings %v along of windows that have ended, want none", got)
	}
}

// Permits on their way back were charged to counts that a restart lost: they are
// not returned to the restored ones.
func TestReturnsOfLostCountsAreDropped(t *testing.T) {
	l, a, _ := leased(t, 3, time.Hour)
	l.returnPermits(a, 0)
	l.dropReturns()
	if got := l.returns["o"]; len(got) != 0 {
		t.Errorf("adjustments left: %+v, want none", got)
	}
}

// A flight that is used again brings nothing along of its last call.
func TestFlightsStartEmpty(t *testing.T) {
	l, _, scope := leased(t, 3, time.Hour)
	c := &call{org: "o", cost: 1, n: 1, limited: [MaxScopes]Scope{scope}}
	f := l.commit.get(c)
	f.drawn[0].units, f.back[0], f.err = [Windows]int64{1, 1, 1}, [Windows]time.Duration{1, 1, 1}, errOpen
	l.commit.put(f)
	for range 100 { // a pool may give any of its flights
		g := l.commit.get(c)
		if g.drawn[0] != (drawn{}) || g.back[0] != [Windows]time.Duration{} || g.err != nil {
			t.Fatalf("a flight begins with %+v, %v, %v", g.drawn[0], g.back[0], g.err)
		}
	}
}
