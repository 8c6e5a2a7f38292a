package storetest

import (
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// testOffer: the union of the owners that gateways remember is kept, and the greater of
// sums that go on accruing. An owner takes the place of none, whichever is offered first. Of
// two owners, the first is kept unless the second is of a later time.
func testOffer(h *harness) {
	h.movable()
	h.reserve(teamPerHour(100*usd), pod(3600))
	was := h.show()
	for i := range was.Balances { // what the images say
		was.Balances[i].Day, was.Balances[i].Month = 2*usd, 3*usd
	}
	h.advance(time.Hour)
	epoch := h.show().Epoch + 1
	bob := ledger.Ownership{Owner: ledger.Owner{Team: "vision", Key: "bob"}}
	x, y, z := ledger.Ownership{Owner: ann}, ledger.Ownership{About: ledger.Metadata{Name: "y"}}, ledger.Ownership{Owner: ann, About: ledger.Metadata{Name: "z"}}
	for _, o := range []*ledger.Offer{
		{Gateway: "one", Epoch: epoch, Owners: map[string]ledger.Ownership{"x": x, "z": y, "w": x}, Balances: was.Balances, At: was.Now},
		{Gateway: "two", Epoch: epoch, Owners: map[string]ledger.Ownership{"x": y, "y": y, "z": z, "w": bob}, At: was.Now, Balances: []ledger.Balance{
			{Scope: ledger.Scope{Kind: ledger.KindOrg}, Accrued: ledger.Accrued{Day: 5 * usd, Month: 1}},
			{Scope: ledger.Scope{Kind: ledger.KindTeam, ID: "gone"}, Accrued: ledger.Accrued{Day: 4 * usd, Month: 4 * usd}},
		}},
	} {
		if err := h.Store.Offer(h.Context(), h.org, o); err != nil {
			h.Fatalf("Offer(%s): %v", o.Gateway, err)
		}
		if err := h.Store.MarkRestored(h.Context(), h.org, epoch, o.Gateway); err != nil {
			h.Fatalf("Sign(%s): %v", o.Gateway, err)
		}
	}
	owners, gateways, err := h.Store.Offers(h.Context(), h.org, epoch)
	slices.Sort(gateways)
	if diff := cmp.Diff(map[string]ledger.Ownership{"x": x, "y": y, "z": z, "w": x}, owners); diff != "" || err != nil || !slices.Equal(gateways, []string{"one", "two"}) {
		h.Errorf("offered by %v, %v (owners want-, got+):\n%s", gateways, err, diff)
	}
	for _, at := range []time.Time{was.Now.Add(time.Second), was.Now} {
		if err := h.Store.Offer(h.Context(), h.org, &ledger.Offer{Gateway: "three", Epoch: epoch, Owners: map[string]ledger.Ownership{"w": bob, "x": y}, At: at}); err != nil {
			h.Fatal(err)
		}
		bob.Owner.Key = "older"
	}
	bob.Owner.Key = "bob"
	if owners, _, err := h.Store.Offers(h.Context(), h.org, epoch); err != nil || owners["w"] != bob || owners["x"] != x {
		h.Errorf("offered are %+v (%v), want the later owner, and no owner in the place of one", owners, err)
	}
	if owners, gateways, err := h.Store.Offers(h.Context(), h.org, epoch+1); err != nil || len(owners)+len(gateways) > 0 {
		h.Errorf("offered for another rebuild: %v by %v, %v", owners, gateways, err)
	}
	for scope, want := range map[ledger.Scope][2]int64{
		{Kind: ledger.KindOrg}:                  {5 * usd, 3*usd + 3600},
		{Kind: ledger.KindTeam, ID: "research"}: {2*usd + 3600, 3*usd + 3600},
		{Kind: ledger.KindTeam, ID: "gone"}:     {4 * usd, 4 * usd},
	} {
		if b := h.balance(scope); b.Day != want[0] || b.Month != want[1] {
			h.Errorf("%s has accrued %d and %d, want %v", scope, b.Day, b.Month, want)
		}
	}
	h.advance(24 * time.Hour) // an image of yesterday says nothing of today
	if err := h.Store.Offer(h.Context(), h.org, &ledger.Offer{Gateway: "one", Epoch: epoch, At: was.Now, Balances: []ledger.Balance{
		{Scope: ledger.Scope{Kind: ledger.KindTeam, ID: "gone"}, Accrued: ledger.Accrued{Day: 9 * usd, Month: 9 * usd}},
	}}); err != nil {
		h.Fatal(err)
	}
	if b := h.balance(ledger.Scope{Kind: ledger.KindTeam, ID: "gone"}); b.Day != 0 || b.Month != 9*usd {
		h.Errorf("accrued are %d and %d, want 0 today and 9 USD this month", b.Day, b.Month)
	}
}

// testHeads: a head says whether a ledger is complete, and changes with it.
func testHeads(h *harness) {
	head := func() ledger.Head {
		h.Helper()
		heads, err := h.Store.Heads(h.Context(), []string{h.org, "nobody"})
		if err != nil || heads[1] != (ledger.Head{}) {
			h.Fatalf("heads = %+v, %v, want nothing of an organisation without a ledger", heads, err)
		}
		return heads[0]
	}
	first := head()
	if !first.Complete || first.Epoch == 0 || first.Lost != "" {
		h.Errorf("head = %+v, want a complete one", first)
	}
	h.commit("lost", "p1", pod(1))
	if next := head(); next.Seq <= first.Seq || next.Epoch != first.Epoch {
		h.Errorf("head = %+v after a change, was %+v", next, first)
	}
	if err := h.Store.BeginRebuild(h.Context(), h.org, "again"); err != nil {
		h.Fatal(err)
	}
	if next := head(); next.Epoch <= first.Epoch {
		h.Errorf("head = %+v after a rebuild began, was %+v", next, first)
	}
}
