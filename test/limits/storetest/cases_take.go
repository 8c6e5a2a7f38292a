package storetest

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/ratelimit"
)

func testAllOrNothing(h *harness) {
	k := key("k", ratelimit.Limit{Minute: 10, Hour: 100, Day: 1000})
	tm := team("t", ratelimit.Limit{Hour: 3})
	o := org("o", ratelimit.Limit{Day: 50})
	for i := range 3 {
		h.want("admitted", h.take(1, k, tm, o), int64(1))
		h.want("key", h.counts(k), each(int64(i+1)))
	}
	h.want("admitted though the team's hour is full", h.take(1, k, tm, o), int64(0))
	for _, s := range []ratelimit.Scope{k, tm, o} {
		h.want("charged to "+s.Ref().String(), h.counts(s), each(3))
	}
	h.want("admitted without the team", h.take(1, k, o), int64(1))
}

func testCalls(h *harness) {
	k, tm := key("k", perMinute(10)), team("t", perMinute(7))
	ops := []ratelimit.Op{{Org: h.org, Scopes: []ratelimit.Scope{k, tm}, Calls: 4, Cost: 2}}
	h.apply(ops...)
	h.want("admitted", ops[0].Admitted, int64(3))
	h.want("states", []any{ops[0].After[0].Count, ops[0].After[1].Count}, []any{each(6), each(6)})
	h.want("admitted of cost 2", h.take(0+1, key("k", perMinute(7))), int64(1))
	h.want("a full window", h.take(5, key("k", perMinute(7))), int64(0))
}

func testScopeCosts(h *harness) {
	k, class := key("k", perMinute(10)), ratelimit.Scope{Kind: ratelimit.KindClass, ID: "c", Limit: perMinute(20), Cost: 3}
	ops := []ratelimit.Op{{Org: h.org, Scopes: []ratelimit.Scope{k, class}, Calls: 4, Cost: 2}, {Org: h.org, Scopes: []ratelimit.Scope{k}, Calls: 1, Cost: 1}}
	h.apply(ops...)
	h.want("admitted, six units of the class each", ops[0].Admitted, int64(3))
	h.want("states", []any{ops[0].After[0].Count, ops[0].After[1].Count}, []any{each(6), each(18)})
	h.want("after the next", ops[1].After[0].Count, each(7))
	h.want("admitted though the class is full", h.take(1, k, class), int64(0))
	h.want("the key", h.counts(k), each(7))
}

func testOrder(h *harness) {
	k, tm := key("k", perMinute(3)), team("t", perMinute(2))
	one := func(scopes ...ratelimit.Scope) ratelimit.Op {
		return ratelimit.Op{Org: h.org, Scopes: scopes, Calls: 1, Cost: 1}
	}
	ops := []ratelimit.Op{one(k, tm), one(tm), one(k, tm), one(k), one(tm, k)}
	h.apply(ops...)
	var admitted []int64
	var after [][]int64
	for _, op := range ops {
		admitted = append(admitted, op.Admitted)
		var minutes []int64
		for _, s := range op.After {
			minutes = append(minutes, s.Count[0])
		}
		after = append(after, minutes)
	}
	h.want("admitted", admitted, []int64{1, 1, 0, 1, 0})
	h.want("states after each", after, [][]int64{{1, 1}, {2}, {1, 2}, {2}, {2, 2}})
}

func testOrganisations(h *harness) {
	k := key("same", perMinute(1))
	ops := []ratelimit.Op{{Org: "org_b", Scopes: []ratelimit.Scope{k}, Calls: 2, Cost: 1}}
	h.want("first organisation", h.take(2, k), int64(1))
	h.apply(ops...)
	h.want("second organisation", ops[0].Admitted, int64(1))
	h.want("groups are stable", h.Store.Group("org_b"), h.Store.Group("org_b"))
}

func testIdentifiers(h *harness) {
	for _, id := range []string{"a:b", "a|b", "#index", `"quoted"`, "*", "[a-z]?", "%d", strings.Repeat("x", 128)} {
		h.org = "o" + id[:len(id)-1]
		k := key(id, perMinute(1))
		h.want("admitted for "+id, h.take(2, k, org(id, perMinute(9))), int64(1))
		h.want("shown for "+id, len(h.show(h.org).Scopes), 2)
	}
}

func testQuotaChange(h *harness) {
	h.want("of 5", h.take(9, key("k", perMinute(5))), int64(5))
	h.want("lowered below the count", h.take(1, key("k", perMinute(2))), int64(0))
	h.want("charged", h.counts(key("k", perMinute(2))), each(5))
	h.want("raised to 8", h.take(9, key("k", perMinute(8))), int64(3))
}

func testUnlimited(h *harness) {
	h.want("limited by the minute alone", h.take(3, key("k", perMinute(3))), int64(3))
	h.want("hour limited later", h.take(9, key("k", ratelimit.Limit{Hour: 5})), int64(2))
}

func testLarge(h *harness) {
	l := ratelimit.Limit{Minute: ratelimit.MaxQuota, Hour: ratelimit.MaxQuota, Day: ratelimit.MaxQuota}
	k := key("k", l)
	const calls = ratelimit.MaxQuota/ratelimit.MaxCost - 1
	ops := []ratelimit.Op{{Org: h.org, Scopes: []ratelimit.Scope{k}, Calls: calls, Cost: ratelimit.MaxCost}}
	h.apply(ops...)
	h.want("admitted", ops[0].Admitted, int64(calls))
	ops[0].Calls, ops[0].Cost = 1, ratelimit.MaxCost-1
	h.apply(ops...)
	h.want("counted exactly", ops[0].After[0].Count, each(ratelimit.MaxQuota-1))
	h.want("one is left", h.take(2, k), int64(1))
}

func testConcurrent(h *harness) {
	const workers, calls, quota = 16, 100, 500
	k, o := key("k", ratelimit.Limit{Hour: quota}), org("o", ratelimit.Limit{Day: 10 * quota})
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range calls {
				ops := []ratelimit.Op{{Org: h.org, Scopes: []ratelimit.Scope{k, o}, Calls: 1, Cost: 1}}
				if _, err := h.Store.Apply(h.background(), ops); err != nil {
					h.Errorf("Apply: %v", err)
					return
				}
				admitted.Add(ops[0].Admitted)
			}
		})
	}
	wg.Wait()
	h.want("admitted of 1600", admitted.Load(), int64(quota))
	h.want("charged to the hour", h.counts(o)[1], int64(quota))
}

func testTurn(h *harness) {
	h.movable()
	k := key("k", ratelimit.Limit{Minute: 2, Hour: 5, Day: 6})
	at := func(what, clock string, want int64) {
		h.Helper()
		now, err := time.Parse("2006-01-02 15:04:05.000", clock)
		if err != nil {
			h.Fatal(err)
		}
		h.SetTime(now)
		h.want(what, h.take(9, k), want)
	}
	at("a fresh minute", "2027-03-14 22:40:59.999", 2)
	at("the next minute, 1 ms later", "2027-03-14 22:41:00.000", 2)
	at("its last millisecond", "2027-03-14 22:41:59.999", 0)
	at("the rest of the hour", "2027-03-14 22:42:00.000", 1)
	at("a full hour", "2027-03-14 22:59:59.999", 0)
	at("the rest of the day", "2027-03-14 23:00:00.000", 1)
	at("a full day", "2027-03-14 23:59:59.999", 0)
	at("the next day", "2027-03-15 00:00:00.000", 2)
	at("two days on", "2027-03-17 00:00:30.000", 2)
	h.want("counts", h.counts(k), each(2))
}

func testStepBack(h *harness) {
	h.movable()
	k := key("k", ratelimit.Limit{Minute: 2, Day: 3})
	h.want("before", h.take(9, k), int64(2))
	h.SetTime(start().Add(-time.Hour))
	h.want("an hour back", h.take(9, k), int64(0))
	h.want("counts an hour back", h.counts(k), each(2))
	h.SetTime(start().Add(-25 * time.Hour))
	h.want("a day back", h.take(9, k), int64(0))
	h.SetTime(start().Add(time.Minute))
	h.want("a minute on", h.take(9, k), int64(1))
}
