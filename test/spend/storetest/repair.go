package storetest

import "github.com/tollgate-dev/tollgate/policies/ledger"

// testRepair: a difference is added once, to a scope that has an account or has none.
func testRepair(h *harness) {
	h.reserve(teamPerHour(100*usd), pod(3))
	h.counts(ledger.Amounts{}, pod(3))
	state := h.show()
	repair := &ledger.Repair{Version: state.Repairs, Differences: []ledger.Difference{
		{Scope: ledger.Scope{Kind: ledger.KindOrg}, Committed: pod(4), Reserved: ledger.Amounts{ledger.Burn: -1}},
		{Scope: ledger.Scope{Kind: ledger.KindTeam, ID: "ops"}, Committed: pod(5)},
	}}
	for _, want := range []bool{true, false} {
		if done, err := h.Store.Repair(h.Context(), h.org, repair); err != nil || done != want {
			h.Errorf("Repair = %t, %v, want %t", done, err, want)
		}
	}
	for scope, want := range map[ledger.Scope][2]ledger.Amounts{
		{Kind: ledger.KindOrg}:                  {pod(4), pod(2)},
		{Kind: ledger.KindTeam, ID: "ops"}:      {pod(5), {}},
		{Kind: ledger.KindTeam, ID: "research"}: {{}, pod(3)},
	} {
		if b := h.balance(scope); b.Committed != want[0] || b.Reserved != want[1] {
			h.Errorf("%s has committed %v and reserved %v, want %v", scope, b.Committed, b.Reserved, want)
		}
	}
	if got := h.show(); len(got.Differences()) != 2 {
		h.Errorf("differences = %+v, want those that were made", got.Differences())
	}
}
