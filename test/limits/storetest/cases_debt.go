package storetest

import (
	"time"

	"github.com/tollgate-dev/tollgate/ratelimit"
)

// owing returns an Op that charges a debt and makes calls.
func (h *harness) owing(calls int64, debtor string, d ratelimit.Debt, s ratelimit.Scope) ratelimit.Op {
	return ratelimit.Op{Org: h.org, Scopes: []ratelimit.Scope{s}, Calls: calls, Cost: 1, Debtor: debtor, Debts: []ratelimit.Debt{d}}
}

// debt returns a debt of units in the windows that run.
func (h *harness) debt(number, units int64, s ratelimit.Scope) ratelimit.Debt {
	at := h.running(s)
	return ratelimit.Debt{Number: number, Generation: at.Generation, Index: at.Index, Units: each(units)}
}

func testDebts(h *harness) {
	k, o := key("k", perMinute(10)), org("o", perMinute(100))
	h.take(1, k)
	first := h.debt(1, 6, k)
	// Calls of one exchange carry the debt of their scope, each of them, and are decided after it.
	ops := []ratelimit.Op{h.owing(2, "a", first, k), h.owing(5, "a", first, k)}
	h.apply(ops...)
	h.want("admitted with the debt", [2]int64{ops[0].Admitted, ops[1].Admitted}, [2]int64{2, 1})
	h.want("states after the calls", [2]int64{ops[0].After[0].Count[0], ops[1].After[0].Count[0]}, [2]int64{9, 10})
	h.apply(h.owing(0, "a", first, k))
	h.want("charged by a debt that is sent again", h.counts(k), each(10))
	only := []ratelimit.Op{h.owing(0, "a", h.debt(2, 5, k), k)}
	h.apply(only...)
	h.want("state after the next debt, beyond the quota", only[0].After[0].Count, each(15))
	h.apply(h.owing(0, "a", first, k))
	h.want("charged by an older debt that comes late", h.counts(k), each(15))
	h.apply(h.owing(0, "a", h.debt(2, 7, k), k))
	h.apply(h.owing(0, "a", h.debt(2, 6, k), k))
	h.want("charged by a debt that has grown, and comes late as it was", h.counts(k), each(17))
	h.apply(h.owing(0, "b", h.debt(1, 1, k), k))
	h.want("charged by another debtor with the same number", h.counts(k), each(18))
	two := ratelimit.Op{
		Org: h.org, Scopes: []ratelimit.Scope{k, o}, Calls: 1, Cost: 1, Debtor: "a", Debts: []ratelimit.Debt{{}, h.debt(3, 7, k)},
	}
	h.apply(two)
	h.want("charged to the scope that owes", h.counts(o), each(7))
	h.want("charged to the scope that does not", h.counts(k), each(18))
	for _, s := range h.show(h.org).Scopes {
		if s.Ref == o.Ref() && s.Limit != o.Limit {
			h.Errorf("a scope that has debts only is shown with quota %v, want %v", s.Limit, o.Limit)
		}
	}
}

func testDebtWindows(h *harness) {
	h.movable()
	k := key("k", perMinute(100))
	h.take(1, k)
	d := h.debt(1, 5, k)
	h.SetTime(start().Add(time.Minute))
	h.apply(h.owing(0, "a", d, k))
	h.want("charged a minute late", h.counts(k), [ratelimit.Windows]int64{0, 6, 6})
	d.Index[0]++
	d.Units = [ratelimit.Windows]int64{1, 6, 6}
	h.apply(h.owing(0, "a", d, k))
	h.want("charged by a debt that has lasted into the next minute", h.counts(k), [ratelimit.Windows]int64{1, 7, 7})
	old := h.debt(2, 5, k)
	h.reset(k.Ref())
	h.apply(h.owing(0, "a", old, k))
	h.want("charged for before the reset", h.counts(k), each(0))
	h.apply(h.owing(0, "a", h.debt(3, 5, k), k))
	h.want("charged after the reset", h.counts(k), each(5))
	h.SetTime(start().Add(48 * time.Hour))
	h.apply(h.owing(0, "a", d, k))
	h.want("charged two days late", h.counts(k), each(0))
}

func testBlindDebts(h *harness) {
	k := key("k", perMinute(100))
	h.take(1, k)
	h.reset(k.Ref())
	d := h.debt(1, 5, k)
	d.Generation, d.Blind = 0, true
	d.Index[0]++ // the gateway's clock is ahead
	h.apply(h.owing(0, "a", d, k))
	h.want("charged", h.counts(k), each(5))
}
