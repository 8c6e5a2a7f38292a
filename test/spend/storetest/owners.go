package storetest

import (
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

func testOwners(h *harness) {
	p := teamPerHour(usd)
	id, _ := h.reserve(p, pod(0.6*usd))
	h.commit(id, "p1", pod(0.6*usd))
	bob := ledger.Owner{Team: "research", Key: "bob"}
	out := h.ask(p, &ledger.Reservation{Hold: "x", Resource: "p1", Owner: bob, After: pod(2 * usd)})
	h.status(out, ledger.OtherOwner)
	if out.Owner != ann {
		h.Errorf("owner = %+v, want %+v", out.Owner, ann)
	}
	out = h.ask(p, &ledger.Reservation{Hold: "y", Resource: "unheard-of", Owner: bob, After: pod(usd)})
	h.status(out, ledger.OtherOwner)
	if out.Owner != (ledger.Owner{}) {
		h.Errorf("owner of an unknown resource = %+v, want the organisation", out.Owner)
	}
	h.status(h.ask(p, &ledger.Reservation{Hold: "z", Resource: "p1", Owner: ann, After: pod(2 * usd)}), ledger.Refused)
}

func testTransfer(h *harness) {
	p := teamPerHour(usd)
	id, _ := h.reserve(p, pod(0.6*usd))
	owner := func(want ledger.Owner) {
		h.Helper()
		got, complete, err := h.Store.Owners(h.Context(), h.org, []string{"p1", "unknown"})
		if diff := cmp.Diff([]ledger.Owner{want, {}}, got); err != nil || !complete || diff != "" {
			h.Errorf("Owners (-want +got, complete %t, %v):\n%s", complete, err, diff)
		}
	}
	owner(ledger.Owner{})
	if ok, err := ledger.Adjust(h.Context(), h.Store, h.org, &ledger.Adjustment{Kind: "pod", Resource: "p1", Amounts: pod(0.6 * usd)}); err != nil || !ok {
		h.Fatalf("Adjust = %t, %v", ok, err)
	}
	owner(ledger.Owner{})
	if got := h.balance(ledger.Scope{Kind: ledger.KindOrg}); got.Committed != pod(0.6*usd) || got.Reserved != pod(0.6*usd) {
		h.Errorf("organisation = %+v, want it counted twice until it is known to be the same", got)
	}
	h.commit(id, "p1", pod(0.5*usd))
	owner(ann)
	h.counts(pod(0.5*usd), ledger.Amounts{})
}

func testAssign(h *harness) {
	p := teamPerHour(10 * usd)
	id, _ := h.reserve(p, pod(usd))
	h.commit(id, "p1", pod(usd))
	bob := ledger.Owner{Team: "ml", Key: "bob"}
	assign := func(version int64, want bool, about ledger.Metadata) {
		h.Helper()
		a := &ledger.Adjustment{Kind: "pod", Resource: "p1", Version: version, Amounts: pod(usd), Owner: &bob, Metadata: about}
		if got, err := ledger.Adjust(h.Context(), h.Store, h.org, a); err != nil || got != want {
			h.Errorf("Adjust of version %d = %t, %v, want %t", version, got, err, want)
		}
	}
	version := h.show().Resources[0].Version
	assign(version+7, false, ledger.Metadata{})
	assign(version, true, ledger.Metadata{Name: "trainer", Decision: "d1"})
	// Without anything about it, what was known stays.
	assign(h.show().Resources[0].Version, true, ledger.Metadata{})
	if got, want := h.show().Resources[0].Metadata, (ledger.Metadata{Name: "trainer", Decision: "d1"}); got != want {
		h.Errorf("about the resource is known %+v, want %+v", got, want)
	}
	for _, o := range []ledger.Owner{bob, ann, {}} {
		state, err := h.Store.Balances(h.Context(), h.org, o)
		if err != nil || !state.Complete || len(state.Balances) != len(o.Scopes()) {
			h.Fatalf("Balances of %s = %+v, %v", o, state, err)
		}
		for _, got := range state.Balances {
			if shown := h.balance(got.Scope); shown.Committed != got.Committed || shown.Reserved != got.Reserved {
				h.Errorf("balance of %s = %+v, and %+v is shown", got.Scope, got, shown)
			}
			want := pod(usd)
			if o == ann && got.Scope.Kind != ledger.KindOrg {
				want = ledger.Amounts{}
			}
			if got.Committed != want {
				h.Errorf("%s has committed %v, want %v", got.Scope, got.Committed, want)
			}
		}
	}
}

func testJobs(h *harness) {
	mine, other := ledger.Job{Endpoint: "e", ID: "j1"}, ledger.Job{Endpoint: "e", ID: "j2"}
	owners := func(want ...ledger.Owner) {
		h.Helper()
		got, complete, err := h.Store.Owners(h.Context(), h.org, []string{"e"}, mine, other)
		if diff := cmp.Diff(want, got); err != nil || !complete || diff != "" {
			h.Errorf("Owners (-want +got, complete %t, %v):\n%s", complete, err, diff)
		}
	}
	note := func(o ledger.Owner) {
		h.Helper()
		if err := h.Store.SetJobOwner(h.Context(), h.org, mine, o, time.Minute); err != nil {
			h.Fatal(err)
		}
	}
	owners(ledger.Owner{}, ledger.Owner{}, ledger.Owner{})
	note(ann)
	note(ledger.Owner{Team: "ml", Key: "bob"})
	owners(ledger.Owner{}, ann, ledger.Owner{})
	if got, _, err := h.Store.Owners(h.Context(), h.org, nil, mine); err != nil || len(got) != 1 || got[0] != ann {
		h.Errorf("Owners of one job = %v, %v, want %v", got, err, ann)
	}
}

// testGivenBack: what returns within 30 days after an adjustment removed it is its
// owner's again, with all that is known of it.
func testGivenBack(h *harness) {
	p := teamPerHour(10 * usd)
	about := ledger.Metadata{Operation: "createPod", Decision: "D", Labels: "project=llm"}
	h.ask(p, &ledger.Reservation{Hold: "h", Kind: "pod", Owner: ann, After: pod(usd), Metadata: about})
	h.commit("h", "p1", pod(usd))
	adjust := func(a ledger.Adjustment, want ledger.AdjustResult) {
		h.Helper()
		a.Kind, a.Resource = "pod", "p1"
		if got, err := h.Store.Adjust(h.Context(), h.org, &a); err != nil || got[0] != want {
			h.Errorf("Adjust(%+v) = %v, %v, want %d", a, got, err, want)
		}
	}
	adjust(ledger.Adjustment{Version: h.record("p1").Version, Gone: true}, ledger.AdjustApplied)
	h.counts(ledger.Amounts{}, ledger.Amounts{})
	adjust(ledger.Adjustment{Amounts: pod(2 * usd), Metadata: ledger.Metadata{Name: "listed"}}, ledger.AdjustReturned)
	h.counts(pod(2*usd), ledger.Amounts{})
	if r := h.record("p1"); r.Owner != ann || r.Metadata != about {
		h.Errorf("record = %+v, want ann's with %+v", r, about)
	}
	if h.SetTime == nil {
		return
	}
	adjust(ledger.Adjustment{Version: h.record("p1").Version, Gone: true}, ledger.AdjustApplied)
	h.advance(ledger.OwnerRetention)
	adjust(ledger.Adjustment{Amounts: pod(usd)}, ledger.AdjustApplied)
	if r := h.record("p1"); r.Owner != (ledger.Owner{}) {
		h.Errorf("after %s the owner is %s, want the organisation", ledger.OwnerRetention, r.Owner)
	}
}

// testAdjustMany makes more adjustments than go into one script: each on its own.
func testAdjustMany(h *harness) {
	var list []*ledger.Adjustment
	var want []ledger.AdjustResult
	for i := range 300 {
		a, made := &ledger.Adjustment{Kind: "pod", Resource: fmt.Sprint("p", i), Amounts: pod(usd)}, ledger.AdjustApplied
		if i%3 == 0 {
			a.Version, made = 7, ledger.AdjustSkipped
		}
		list, want = append(list, a), append(want, made)
	}
	got, err := h.Store.Adjust(h.Context(), h.org, list...)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		h.Errorf("Adjust (-want +got, %v):\n%s", err, diff)
	}
	if b := h.balance(ledger.Scope{Kind: ledger.KindOrg}); b.Committed != (ledger.Amounts{200 * usd, 200, 200}) {
		h.Errorf("committed = %v, want 200 pods", b.Committed)
	}
	if none, err := h.Store.Adjust(h.Context(), h.org); err != nil || len(none) != 0 {
		h.Errorf("Adjust of nothing = %v, %v", none, err)
	}
}
