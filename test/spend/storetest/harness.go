package storetest

import (
	"fmt"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

func (h *harness) rebuild() {
	h.Helper()
	if err := h.Store.BeginRebuild(h.Context(), h.org, "first"); err != nil {
		h.Fatalf("Begin: %v", err)
	}
	if done, err := h.Store.FinishRebuild(h.Context(), h.org, "first"); err != nil || !done {
		h.Fatalf("Finish = %t, %v, want a complete ledger", done, err)
	}
}

// ann is a caller of team research; teamPerHour limits that team.
var ann = ledger.Owner{Team: "research", Key: "ann"}

func teamPerHour(limit int64) *ledger.Plan {
	return &ledger.Plan{Teams: map[string]ledger.Budget{"research": {PerHour: catalog.Money(limit)}}}
}

// pod returns the amounts of a running pod.
func pod(burn int64) ledger.Amounts {
	return ledger.Amounts{ledger.Burn: burn, ledger.GPUs: 1, ledger.Pods: 1}
}

// limits are the ceilings of an owner's scopes under a plan.
func limits(p *ledger.Plan, o ledger.Owner) [][ledger.Ceilings]int64 {
	var out [][ledger.Ceilings]int64
	for _, s := range o.Scopes() {
		out = append(out, p.Budget(s).Limits())
	}
	return out
}

// reserve asks for room for something new under a fresh hold.
func (h *harness) reserve(p *ledger.Plan, after ledger.Amounts) (string, ledger.Outcome) {
	h.Helper()
	h.n++
	id := fmt.Sprintf("hold-%d", h.n)
	return id, h.ask(p, &ledger.Reservation{Hold: id, Kind: "pod", Owner: ann, After: after, Horizon: p.Horizon})
}

func (h *harness) ask(p *ledger.Plan, r *ledger.Reservation) ledger.Outcome {
	h.Helper()
	r.Limits = limits(p, r.Owner)
	out, err := h.Store.Reserve(h.Context(), h.org, r)
	if err != nil {
		h.Fatalf("Reserve(%s): %v", r.Hold, err)
	}
	return out
}

func (h *harness) settle(s ledger.Settlement) {
	h.Helper()
	if err := h.Store.Settle(h.Context(), h.org, &s); err != nil {
		h.Fatalf("Settle(%s): %v", s.Hold, err)
	}
}

func (h *harness) commit(hold, resource string, a ledger.Amounts) {
	h.Helper()
	h.settle(ledger.Settlement{Hold: hold, End: ledger.Commit, Kind: "pod", Resource: resource, Amounts: a})
}

func (h *harness) show() ledger.State {
	h.Helper()
	s, err := h.Store.Show(h.Context(), h.org)
	if err != nil {
		h.Fatalf("Show: %v", err)
	}
	return s
}

// balance returns the counted amounts of a scope.
func (h *harness) balance(s ledger.Scope) ledger.Balance {
	h.Helper()
	for _, b := range h.show().Balances {
		if b.Scope == s {
			return b
		}
	}
	return ledger.Balance{Scope: s}
}

// each lists the scopes of ann.
func each() []ledger.Scope { return ann.Scopes() }

// counts fails unless committed and reserved are as given in each of ann's scopes.
func (h *harness) counts(committed, reserved ledger.Amounts) {
	h.Helper()
	for _, s := range each() {
		b := h.balance(s)
		if b.Committed != committed || b.Reserved != reserved {
			h.Errorf("%s has committed %v and reserved %v, want %v and %v", s, b.Committed, b.Reserved, committed, reserved)
		}
	}
}

func (h *harness) status(got ledger.Outcome, want ledger.Status) {
	h.Helper()
	if got.Status != want {
		h.Errorf("status = %d, want %d (levels %v)", got.Status, want, got.Levels)
	}
}

func (h *harness) record(id string) *ledger.Record {
	h.Helper()
	for _, r := range h.show().Resources {
		if r.ID == id {
			return &r
		}
	}
	return nil
}
