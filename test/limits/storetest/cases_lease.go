package storetest

import (
	"time"

	"github.com/tollgate-dev/tollgate/ratelimit"
)

// leaseOp is a leasing call on one scope.
func (h *harness) leaseOp(s ratelimit.Scope, need, want, divisor int64) ratelimit.Op {
	return ratelimit.Op{
		Org: h.org, Scopes: []ratelimit.Scope{s}, Calls: 1, Cost: 1, Gateway: "gw", Divisor: divisor,
		Draws: []ratelimit.Draw{{Need: each(need), Want: each(want)}},
	}
}

// lease runs one leasing call and returns whether it passed and the granted permits.
func (h *harness) lease(s ratelimit.Scope, need, want, divisor int64) (int64, [ratelimit.Windows]int64) {
	h.Helper()
	ops := []ratelimit.Op{h.leaseOp(s, need, want, divisor)}
	h.apply(ops...)
	return ops[0].Admitted, ops[0].Draws[0].Granted
}

func testDraws(h *harness) {
	k := key("k", ratelimit.Limit{Minute: 100, Hour: 150})
	ok, got := h.lease(k, 1, 40, 2)
	h.want("admitted", ok, int64(1))
	h.want("granted", got, each(40))
	h.want("charged", h.counts(k), each(41))

	// Leased permits are gone for exact calls, in the same exchange too.
	ops := []ratelimit.Op{
		h.leaseOp(k, 1, 9, 1),
		{Org: h.org, Scopes: []ratelimit.Scope{k}, Calls: 99, Cost: 1},
	}
	h.apply(ops...)
	h.want("state after the lease", ops[0].After[0].Count, each(51))
	h.want("exact calls admitted", ops[1].Admitted, int64(49))

	// Permits held of one window are no reason to charge it again.
	ops = []ratelimit.Op{h.leaseOp(k, 0, 0, 1)}
	ops[0].Draws[0].Need = [ratelimit.Windows]int64{0, 3, 0}
	h.apply(ops...)
	h.want("admitted past a full minute", ops[0].Admitted, int64(1))
	h.want("charged to the hour only", h.counts(k), [ratelimit.Windows]int64{100, 103, 100})
}

func testDrawsShrink(h *harness) {
	k := key("k", ratelimit.Limit{Minute: 100, Hour: 1000})
	_, got := h.lease(k, 0, 50, 10)
	h.want("a tenth of what is left of each", got, [ratelimit.Windows]int64{10, 50, 50})
	_, got = h.lease(k, 0, 50, 1000)
	h.want("less than one", got, [ratelimit.Windows]int64{0, 0, 50})

	// Permits that a gateway holds already count: the bound is on the sum.
	many := key("many", ratelimit.Limit{Minute: 100, Hour: 1000})
	ops := []ratelimit.Op{h.leaseOp(many, 30, 50, 5)}
	ops[0].Draws[0].Held = [ratelimit.Windows]int64{10, 190, 300}
	h.apply(ops...)
	h.want("no more than a fifth of what is left in sum", ops[0].Draws[0].Granted, [ratelimit.Windows]int64{6, 42, 50})
}

func testDrawRefused(h *harness) {
	k := key("k", perMinute(10))
	h.want("exact calls", h.take(8, k), int64(8))
	ok, got := h.lease(k, 3, 5, 1)
	h.want("admitted", ok, int64(0))
	h.want("granted", got, each(0))
	h.want("charged", h.counts(k), each(8))
	h.want("listed", len(h.show(h.org).Scopes[0].Leases), 0)
	ok, got = h.lease(k, 2, 5, 1)
	h.want("admitted with the last", ok, int64(1))
	h.want("nothing left to grant but where unlimited", got, [ratelimit.Windows]int64{0, 5, 5})
}

// state returns the state of s as the store tells it.
func (h *harness) state(s ratelimit.Scope) ratelimit.State {
	h.Helper()
	for _, scope := range h.show(h.org).Scopes {
		if scope.Ref == s.Ref() {
			return scope.State
		}
	}
	return ratelimit.State{}
}

// running names the running windows of s, requiring no count.
func (h *harness) running(s ratelimit.Scope) ratelimit.State {
	h.Helper()
	state := h.state(s)
	state.Count = each(0)
	return state
}

func testReturn(h *harness) {
	k := key("k", ratelimit.Limit{Minute: 10, Hour: 100})
	h.lease(k, 1, 9, 1)
	a := ratelimit.Adjustment{Ref: k.Ref(), State: h.running(k), Limit: k.Limit, Delta: each(-4)}
	h.adjust(a)
	h.want("after a return", h.counts(k), each(6))
	a.State.Index[0]--
	h.adjust(a)
	h.want("a return for an ended minute", h.counts(k), [ratelimit.Windows]int64{6, 2, 2})
	h.adjust(a)
	h.want("never negative", h.counts(k), [ratelimit.Windows]int64{6, 0, 0})
	h.adjust(ratelimit.Adjustment{Ref: k.Ref(), State: h.running(k), Limit: k.Limit, Delta: each(20)})
	h.want("charged beyond the quota", h.counts(k), [ratelimit.Windows]int64{26, 20, 20})
	h.want("and then full", h.take(1, k), int64(0))
}

func testRestore(h *harness) {
	seen := key("seen", perMinute(10))
	h.take(3, seen)
	lost := key("lost", perMinute(10))
	a := ratelimit.Adjustment{Ref: lost.Ref(), State: h.state(seen), Limit: lost.Limit}
	a.State.Count = each(8)
	h.adjust(a)
	h.want("restored", h.counts(lost), each(8))
	a.State.Count = each(5)
	h.adjust(a)
	h.want("a gateway that knows less", h.counts(lost), each(8))
	h.want("left", h.take(9, lost), int64(2))
	h.want("listed", len(h.show(h.org).Scopes), 2)
	a.State.Index[0]++
	a.State.Count = each(10)
	h.adjust(a)
	h.want("a minute that is later than the clock", h.take(9, lost), int64(0))
}

func testReset(h *harness) {
	a, b := key("a", perMinute(5)), key("b", perMinute(5))
	h.take(5, a)
	h.take(5, b)
	old := h.running(a)
	h.reset(a.Ref())
	h.want("after a reset", h.take(9, a), int64(5))
	h.want("the other", h.take(9, b), int64(0))
	h.adjust(ratelimit.Adjustment{Ref: a.Ref(), State: old, Delta: each(-3)})
	h.want("a return of permits from before the reset", h.counts(a), each(5))
	first := h.state(a).Generation
	h.reset(ratelimit.Ref{})
	h.want("after a reset of all", []int64{h.take(9, a), h.take(9, b)}, []int64{5, 5})
	if again := h.state(a).Generation; again <= first || first <= old.Generation {
		h.Errorf("generations %d, %d, %d do not rise", old.Generation, first, again)
	}
	h.reset(key("never seen", ratelimit.Limit{}).Ref())
	h.want("resetting nothing shows nothing", len(h.show(h.org).Scopes), 2)
	h.org = "org_unknown"
	h.reset(ratelimit.Ref{})
}

func testShow(h *harness) {
	h.want("nothing", len(h.show(h.org).Scopes), 0)
	k, o := key("k", ratelimit.Limit{Minute: 10, Hour: 20}), org("o", ratelimit.Limit{Day: 1000})
	h.take(2, k, o)
	ops := []ratelimit.Op{{
		Org: h.org, Scopes: []ratelimit.Scope{k, o}, Calls: 1, Cost: 1, Gateway: "gw-2", Divisor: 1,
		Draws: []ratelimit.Draw{{Need: each(1), Want: each(3)}, {Need: each(1), Want: each(5), Held: each(2)}},
	}}
	now := h.apply(ops...)
	h.lease(k, 1, 1, 1)
	snap := h.show(h.org)
	if d := snap.Now - now; d < 0 || d > 60_000 {
		h.Errorf("Show says %d, Apply said %d", snap.Now, now)
	}
	index := ops[0].After[0].Index
	h.want("index of the day", index[2], now/86_400_000)
	h.want("scopes", snap.Scopes, []ratelimit.ScopeState{
		{
			Ref: k.Ref(), Limit: k.Limit, State: ratelimit.State{Index: index, Count: each(8)},
			Leases: []ratelimit.LeaseState{
				{Gateway: "gw", Index: index, Held: each(1)},
				{Gateway: "gw-2", Index: index, Held: each(3)},
			},
		},
		{
			Ref: o.Ref(), Limit: o.Limit, State: ratelimit.State{Index: index, Count: each(8)},
			Leases: []ratelimit.LeaseState{{Gateway: "gw-2", Index: index, Held: each(7)}},
		},
	})
	h.adjust(ratelimit.Adjustment{Ref: o.Ref(), State: h.running(o), Delta: each(-7), Gateway: "gw-2"})
	h.want("lease after its return", h.show(h.org).Scopes[1].Leases[0].Held, each(0))
}

func testLeases(h *harness) {
	k, other := key("k", perMinute(10)), key("other", perMinute(10))
	h.lease(k, 1, 4, 1)
	day := h.running(k).Index[2]
	leases := func() [][]ratelimit.LeaseState {
		h.Helper()
		got, err := h.Store.Leases(h.Context(), h.org, day, []ratelimit.Ref{other.Ref(), k.Ref()})
		if err != nil {
			h.Fatalf("Leases: %v", err)
		}
		return got
	}
	h.want("before the gateway has beaten", leases(), [][]ratelimit.LeaseState{nil, nil})
	h.beat("gw", time.Hour)
	h.beat("gw-2", time.Hour)
	h.want("of a gateway that lives", leases(), [][]ratelimit.LeaseState{
		nil, {{Gateway: "gw", Index: h.running(k).Index, Held: each(4)}},
	})
}

func (h *harness) beat(gateway string, within time.Duration) int {
	h.Helper()
	return h.pulse(gateway, within).Live
}

func (h *harness) pulse(gateway string, within time.Duration) ratelimit.HeartbeatResult {
	h.Helper()
	p, err := h.Store.Heartbeat(h.Context(), gateway, within)
	if err != nil {
		h.Fatalf("Beat: %v", err)
	}
	return p
}

func testBeat(h *harness) {
	h.want("alone", h.beat("a", time.Hour), 1)
	h.want("two", h.beat("b", time.Hour), 2)
	before := h.pulse("a", time.Hour)
	h.want("again", before.Live, 2)
	h.take(1, key("k", perMinute(5)))
	h.reset(ratelimit.Ref{})
	h.want("resets told", h.pulse("b", time.Hour).Resets-before.Resets, int64(1))
}

func testBeatForgets(h *harness) {
	h.movable()
	h.beat("a", 10*time.Second)
	h.SetTime(start().Add(6 * time.Second))
	h.want("both", h.beat("b", 10*time.Second), 2)
	h.SetTime(start().Add(11 * time.Second))
	h.want("a was silent too long", h.beat("b", 10*time.Second), 1)
}

func testLateReturn(h *harness) {
	h.movable()
	k := key("k", ratelimit.Limit{Minute: 10, Hour: 100})
	h.lease(k, 1, 9, 1)
	a := ratelimit.Adjustment{Ref: k.Ref(), State: h.running(k), Limit: k.Limit, Delta: each(-9)}
	h.SetTime(start().Add(time.Minute))
	h.take(5, k)
	h.adjust(a)
	h.want("counts", h.counts(k), [ratelimit.Windows]int64{5, 6, 6})
}
