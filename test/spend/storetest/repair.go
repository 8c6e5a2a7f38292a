package storetest

import "github.com/tollgate-dev/tollgate/policies/spend"

// testRepair: a difference is added once, to a scope that has an account or has none.
func testRepair(h *harness) {
	h.reserve(teamPerHour(100*usd), pod(3))
	h.counts(spend.Amounts{}, pod(3))
	state := h.show()
	repair := &spend.Repair{Version: state.Repairs, Differences: []spend.Difference{
		{Scope: spend.Scope{Kind: spend.KindOrg}, Committed: pod(4), Reserved: spend.Amounts{spend.Burn: -1}},
		{Scope: spend.Scope{Kind: spend.KindTeam, ID: "ops"}, Committed: pod(5)},
	}}
	for _, want := range []bool{true, false} {
		if done, err := h.Store.Repair(h.Context(), h.org, repair); err != nil || done != want {
			h.Errorf("Repair = %t, %v, want %t", done, err, want)
		}
	}
	for scope, want := range map[spend.Scope][2]spend.Amounts{
		{Kind: spend.KindOrg}:                  {pod(4), pod(2)},
		{Kind: spend.KindTeam, ID: "ops"}:      {pod(5), {}},
		{Kind: spend.KindTeam, ID: "research"}: {{}, pod(3)},
	} {
		if b := h.balance(scope); b.Committed != want[0] || b.Reserved != want[1] {
			h.Errorf("%s has committed %v and reserved %v, want %v", scope, b.Committed, b.Reserved, want)
		}
	}
	if got := h.show(); len(got.Differences()) != 2 {
		h.Errorf("differences = %+v, want those that were made", got.Differences())
	}
}
