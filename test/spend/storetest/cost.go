package storetest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// perDay limits what team research may spend in a day.
func perDay(limit int64) *ledger.Plan {
	return &ledger.Plan{Teams: map[string]ledger.Budget{"research": {PerDay: catalog.Money(limit)}}}
}

// run asks for room for something that costs so much once, under a hold.
func (h *harness) run(p *ledger.Plan, hold string, cost int64) ledger.Outcome {
	h.Helper()
	return h.ask(p, &ledger.Reservation{Hold: hold, Kind: "job", Owner: ann, After: ledger.Amounts{ledger.Cost: cost}})
}

// spent fails unless each of ann's scopes has accrued and reserved so much.
func (h *harness) spent(accrued, reserved int64) {
	h.Helper()
	for _, s := range each() {
		b := h.balance(s)
		if b.Day != accrued || b.Month != accrued || b.Reserved[ledger.Cost] != reserved || b.Committed != (ledger.Amounts{}) {
			h.Errorf("%s: %+v, want %d accrued and %d reserved", s, b, accrued, reserved)
		}
	}
}

func testCost(h *harness) {
	p := perDay(usd)
	h.status(h.run(p, "a", 0.6*usd), ledger.Admitted)
	h.spent(0, 0.6*usd)
	out := h.run(p, "b", 0.6*usd)
	h.status(out, ledger.Refused)
	if got, want := out.Levels[1][ledger.PerDay], (ledger.Level{Reserved: 0.6 * usd, Needs: 0.6 * usd}); out.Ceiling != ledger.PerDay || got != want {
		h.Errorf("refused by ceiling %d with %+v, want per_day with %+v", out.Ceiling, got, want)
	}
	for range 2 {
		h.settle(ledger.Settlement{Hold: "a", End: ledger.Commit, Amounts: ledger.Amounts{ledger.Cost: 0.25 * usd}})
	}
	h.spent(0.25*usd, 0)
	h.status(h.run(p, "b", 0.6*usd), ledger.Admitted)
	h.settle(ledger.Settlement{Hold: "b", End: ledger.Release})
	h.spent(0.25*usd, 0)
	h.run(p, "c", 0.5*usd)
	h.settle(ledger.Settlement{Hold: "c", End: ledger.Commit, WholeReservation: true})
	h.spent(0.75*usd, 0)
	h.status(h.ask(p, &ledger.Reservation{
		Hold: "f", Kind: "job", Owner: ann, After: ledger.Amounts{ledger.Cost: 0.01 * usd}, Metadata: ledger.Metadata{Name: "\"most\":1", MaxCost: 0.05 * usd},
	}), ledger.Admitted)
	h.spent(0.75*usd, 0.01*usd)
	if s := h.show(); s.Unreserved(ledger.Scope{Kind: ledger.KindTeam, ID: "research"}) != 0.04*usd || s.Unreserved(ledger.Scope{Kind: ledger.KindTeam, ID: "other"}) != 0 {
		h.Errorf("holds %+v: want 0.04 USD beyond what is reserved", s.Holds)
	}
	h.settle(ledger.Settlement{Hold: "f", End: ledger.Commit, WholeReservation: true})
	h.spent(0.8*usd, 0)
	h.status(h.run(p, "d", 0.2*usd), ledger.Admitted)
	h.status(h.run(p, "e", 1), ledger.Refused)
	if s := h.show(); len(s.Resources) != 0 || len(s.Holds) != 1 || s.Holds[0].Amounts[ledger.Cost] != 0.2*usd {
		h.Errorf("resources %+v and holds %+v, want one hold", s.Resources, s.Holds)
	}
	var admitted atomic.Int64
	var all sync.WaitGroup
	q := perDay(2 * usd)
	for i := range 40 {
		all.Go(func() {
			r := ledger.Reservation{Hold: "race-" + string(rune('A'+i)), Kind: "job", Owner: ann, After: ledger.Amounts{ledger.Cost: 0.3 * usd}, Limits: limits(q, ann)}
			out, err := h.Store.Reserve(h.Context(), h.org, &r)
			if err != nil {
				h.Errorf("Reserve: %v", err)
			} else if out.Status == ledger.Admitted {
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
		h.settle(ledger.Settlement{Hold: "a", End: ledger.Open, NewID: "job 1", ResolveWithin: time.Minute})
	}
	h.spent(0, 0.4*usd)
	if s := h.show(); len(s.Holds) != 1 || s.Holds[0].ID != "job 1" || !s.Holds[0].Open {
		h.Fatalf("holds = %+v, want job 1 open", s.Holds)
	}
	h.settle(ledger.Settlement{Hold: "a", End: ledger.Release}) // late
	h.status(h.run(p, "a", 1), ledger.Settled)
	for range 2 {
		h.settle(ledger.Settlement{Hold: "job 1", End: ledger.Commit, Amounts: ledger.Amounts{ledger.Cost: 0.1 * usd}})
	}
	h.spent(0.1*usd, 0)
	// The job is run again, twice, the second time before the end of the first was seen.
	h.run(p, "b", 0.4*usd)
	h.settle(ledger.Settlement{Hold: "b", End: ledger.Open, NewID: "job 1", ResolveWithin: time.Minute})
	h.spent(0.1*usd, 0.4*usd)
	h.run(p, "c", 0.3*usd)
	h.settle(ledger.Settlement{Hold: "c", End: ledger.Open, NewID: "job 1", ResolveWithin: time.Minute})
	h.spent(0.5*usd, 0.3*usd)
	h.settle(ledger.Settlement{Hold: "job 1", End: ledger.Commit, Amounts: ledger.Amounts{ledger.Cost: 0.2 * usd}})
	h.spent(0.7*usd, 0)
}
