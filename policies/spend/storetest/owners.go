package storetest

import (
	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/policies/spend"
)

func testOwners(h *harness) {
	p := teamPerHour(usd)
	id, _ := h.reserve(p, pod(0.6*usd))
	h.commit(id, "p1", pod(0.6*usd))
	bob := spend.Owner{Team: "research", Key: "bob"}
	out := h.ask(p, &spend.Reservation{Hold: "x", Resource: "p1", Owner: bob, After: pod(2 * usd)})
	h.status(out, spend.OtherOwner)
	if out.Owner != ann {
		h.Errorf("owner = %+v, want %+v", out.Owner, ann)
	}
	out = h.ask(p, &spend.Reservation{Hold: "y", Resource: "unheard-of", Owner: bob, After: pod(usd)})
	h.status(out, spend.OtherOwner)
	if out.Owner != (spend.Owner{}) {
		h.Errorf("owner of an unknown resource = %+v, want the organisation", out.Owner)
	}
	h.status(h.ask(p, &spend.Reservation{Hold: "z", Resource: "p1", Owner: ann, After: pod(2 * usd)}), spend.Refused)
}

func testTransfer(h *harness) {
	p := teamPerHour(usd)
	id, _ := h.reserve(p, pod(0.6*usd))
	owner := func(want spend.Owner) {
		h.Helper()
		got, err := h.Store.Owners(h.Context(), h.org, []string{"p1", "unknown"})
		if diff := cmp.Diff([]spend.Owner{want, {}}, got); err != nil || diff != "" {
			h.Errorf("Owners (-want +got, %v):\n%s", err, diff)
		}
	}
	owner(spend.Owner{})
	if ok, err := h.Store.Adjust(h.Context(), h.org, &spend.Adjustment{Kind: "pod", Resource: "p1", Amounts: pod(0.6 * usd)}); err != nil || !ok {
		h.Fatalf("Adjust = %t, %v", ok, err)
	}
	owner(spend.Owner{})
	if got := h.balance(spend.Scope{Kind: spend.KindOrg}); got.Committed != pod(0.6*usd) || got.Reserved != pod(0.6*usd) {
		h.Errorf("organisation = %+v, want it counted twice until it is known to be the same", got)
	}
	h.commit(id, "p1", pod(0.5*usd))
	owner(ann)
	h.counts(pod(0.5*usd), spend.Amounts{})
}

func testAssign(h *harness) {
	p := teamPerHour(10 * usd)
	id, _ := h.reserve(p, pod(usd))
	h.commit(id, "p1", pod(usd))
	bob := spend.Owner{Team: "ml", Key: "bob"}
	assign := func(version int64, want bool) {
		h.Helper()
		a := &spend.Adjustment{Kind: "pod", Resource: "p1", Version: version, Amounts: pod(usd), Owner: &bob}
		if got, err := h.Store.Adjust(h.Context(), h.org, a); err != nil || got != want {
			h.Errorf("Adjust of version %d = %t, %v, want %t", version, got, err, want)
		}
	}
	version := h.show().Resources[0].Version
	assign(version+7, false)
	assign(version, true)
	for _, o := range []spend.Owner{bob, ann, {}} {
		state, err := h.Store.Balances(h.Context(), h.org, o)
		if err != nil || !state.Complete || len(state.Balances) != len(o.Scopes()) {
			h.Fatalf("Balances of %s = %+v, %v", o, state, err)
		}
		for _, got := range state.Balances {
			if shown := h.balance(got.Scope); shown.Committed != got.Committed || shown.Reserved != got.Reserved {
				h.Errorf("balance of %s = %+v, and %+v is shown", got.Scope, got, shown)
			}
			want := pod(usd)
			if o == ann && got.Scope.Kind != spend.KindOrg {
				want = spend.Amounts{}
			}
			if got.Committed != want {
				h.Errorf("%s has committed %v, want %v", got.Scope, got.Committed, want)
			}
		}
	}
}
