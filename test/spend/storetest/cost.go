package storetest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// perDay limits what team research may spend in a day.
func perDay(limit int64) *spend.Plan {
	return &spend.Plan{Teams: map[string]spend.Budget{"research": {PerDay: catalog.Money(limit)}}}
}

// run asks for room for something that costs so much once, under a hold.
func (h *harness) run(p *spend.Plan, hold string, cost int64) spend.Outcome {
	h.Helper()
	return h.ask(p, &spend.Reservation{Hold: hold, Kind: "job", Owner: ann, After: spend.Amounts{spend.Cost: cost}})
}

// spent fails unless each of ann's scopes has accrued and reserved so much.
func (h *harness) spent(accrued, reserved int64) {
	h.Helper()
	for _, s := range each() {
		b := h.balance(s)
		if b.Day != accrued || b.Month != accrued || b.Reserved[spend.Cost] != reserved || b.Committed != (spend.Amounts{}) {
			h.Errorf("%s: %+v, want %d accrued and %d reserved", s, b, accrued, reserved)
		}
	}
}

func testCost(h *harness) {
	p := perDay(usd)
	h.status(h.run(p, "a", 0.6*usd), spend.Admitted)
	h.spent(0, 0.6*usd)
	out := h.run(p, "b", 0.6*usd)
	h.status(out, spend.Refused)
	if got, want := out.Levels[1][spend.PerDay], (spend.Level{Reserved: 0.6 * usd, Needs: 0.6 * usd}); out.Ceiling != spend.PerDay || got != want {
		h.Errorf("refused by ceiling %d with %+v, want per_day with %+v", out.Ceiling, got, want)
	}
	for range 2 {
		h.settle(spend.Settlement{Hold: "a", End: spend.Commit, Amounts: spend.Amounts{spend.Cost: 0.25 * usd}})
	}
	h.spent(0.25*usd, 0)
	h.status(h.run(p, "b", 0.6*usd), spend.Admitted)
	h.settle(spend.Settlement{Hold: "b", End: spend.Release})
	h.spent(0.25*usd, 0)
	h.run(p, "c", 0.5*usd)
	h.settle(spend.Settlement{Hold: "c", End: spend.Commit, WholeReservation: true})
	h.spent(0.75*usd, 0)
	h.status(h.ask(p, &spend.Reservation{
		Hold: "f", Kind: "job", Owner: ann, After: spend.Amounts{spend.Cost: 0.01 * usd}, Metadata: spend.Metadata{Name: "\"most\":1", MaxCost: 0.05 * usd},
	}), spend.Admitted)
	h.spent(0.75*usd, 0.01*usd)
	if s := h.show(); s.Unreserved(spend.Scope{Kind: spend.KindTeam, ID: "research"}) != 0.04*usd || s.Unreserved(spend.Scope{Kind: spend.KindTeam, ID: "other"}) != 0 {
		h.Errorf("holds %+v: want 0.04 USD beyond what is reserved", s.Holds)
	}
	h.settle(spend.Settlement{Hold: "f", End: spend.Commit, WholeReservation: true})
	h.spent(0.8*usd, 0)
	h.status(h.run(p, "d", 0.2*usd), spend.Admitted)
	h.status(h.run(p, "e", 1), spend.Refused)
	if s := h.show(); len(s.Resources) != 0 || len(s.Holds) != 1 || s.Holds[0].Amounts[spend.Cost] != 0.2*usd {
		h.Errorf("resources %+v and holds %+v, want one hold", s.Resources, s.Holds)
	}
	var admitted atomic.Int64
	var all sync.WaitGroup
	q := perDay(2 * usd)
	for i := range 40 {
		all.Go(func() {
			r := spend.Reservation{Hold: "race-" + string(rune('A'+i)), Kind: "job", Owner: ann, After: spend.Amounts{spend.Cost: 0.3 * usd}, Limits: limits(q, ann)}
			out, err := h.Store.Reserve(h.Context(), h.org, &r)
			if err != nil {
				h.Errorf("Reserve: %v", err)
			} else if out.Status == spend.Admitted {
				admitted.Add(1)
			}
		})
	}
	all.Wait()
	if got, want := admitted.Load(), int64(3); got != want { // of the dollar that is left
		h.Errorf("%d racing runs were admitted, want %d", got, want)
	}
}

func testAs(h *harness) {
	p := perDay(usd)
	h.run(p, "a", 0.4*usd)
	for range 2 {
		h.settle(spend.Settlement{Hold: "a", End: spend.Open, NewID: "job 1", ResolveWithin: time.Minute})
	}
	h.spent(0, 0.4*usd)
	if s := h.show(); len(s.Holds) != 1 || s.Holds[0].ID != "job 1" || !s.Holds[0].Open {
		h.Fatalf("holds = %+v, want job 1 open", s.Holds)
	}
	h.settle(spend.Settlement{Hold: "a", End: spend.Release}) // late
	h.status(h.run(p, "a", 1), spend.Settled)
	for range 2 {
		h.settle(spend.Settlement{Hold: "job 1", End: spend.Commit, Amounts: spend.Amounts{spend.Cost: 0.1 * usd}})
	}
	h.spent(0.1*usd, 0)
	// The job is run again, twice, the second time before the end of the first was seen.
	h.run(p, "b", 0.4*usd)
	h.settle(spend.Settlement{Hold: "b", End: spend.Open, NewID: "job 1", ResolveWithin: time.Minute})
	h.spent(0.1*usd, 0.4*usd)
	h.run(p, "c", 0.3*usd)
	h.settle(spend.Settlement{Hold: "c", End: spend.Open, NewID: "job 1", ResolveWithin: time.Minute})
	h.spent(0.5*usd, 0.3*usd)
	h.settle(spend.Settlement{Hold: "job 1", End: spend.Commit, Amounts: spend.Amounts{spend.Cost: 0.2 * usd}})
	h.spent(0.7*usd, 0)
}
