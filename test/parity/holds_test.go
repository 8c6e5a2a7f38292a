package parity

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/ledger/redisstore"
	"github.com/tollgate-dev/tollgate/test/world"
)

// stray reserves room for a pod of team research as a gateway that has ended since.
func stray(t *testing.T, d *door, hold string) {
	t.Helper()
	s := redisstore.New(world.Redis(t, d.redis.Addr()), "tollgate:ledger:", nil)
	out, err := s.Reserve(t.Context(), "acme", &ledger.Reservation{
		Hold: hold, Kind: "pod", Owner: ledger.Owner{Team: "research", Key: "key_research"}, After: ledger.Amounts{ledger.Burn: 430_000, ledger.Pods: 1, ledger.GPUs: 1},
		Metadata: ledger.Metadata{Operation: "createPod", Name: "lost"}, Holder: ledger.Holder{Incarnation: "01J", Gateway: "gw-2"}, Limits: make([][ledger.Ceilings]int64, 3),
	})
	if err != nil || out.Status != ledger.Admitted {
		t.Fatalf("Reserve = %d, %v", out.Status, err)
	}
}

// An operator sees every hold, and ends one whose call is over. Its room is free then.
func TestHoldsAreReleasedByHand(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", budgeted("{gpus: 1}"))
	d.reconcile(t)
	stray(t, d, "h1")
	release := func(query string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/admin/spend/holds/release?org=acme&"+query, http.NoBody)
		r.Host = "127.0.0.1"
		d.gateway.AdminHandler().ServeHTTP(w, r)
		return w
	}
	for query, want := range map[string]string{
		"id=h1": "reason: is required: reason", "id=none&reason=x": "does not exist in organisation", "id=h1&reason=x": "might be in progress until",
	} {
		if w := release(query); w.Code != 400 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s, want 400 and %q", query, w.Code, w.Body, want)
		}
	}
	d.advance(5 * time.Minute)
	if a := d.ask(t, request("POST", "/v2/pods", "key_research", podL4)); a.Status != 402 {
		t.Errorf("beside the hold: %d %s, want 402", a.Status, a.Body)
	}
	holds := d.ledger(t).Holds
	if len(holds) != 1 {
		t.Fatalf("holds = %+v, want one", holds)
	}
	h := holds[0]
	if h.State != "in_flight" || h.Age < 300 || h.Gateway != "gw-2" || h.Reserves.Pods != 1 || h.Operation != "createPod" {
		t.Errorf("hold = %+v, want an in-flight one of gw-2 that is five minutes old", h)
	}
	if got := asOperator[money.Hold](t, d, "POST", "/admin/spend/holds/release?org=acme&id=h1&reason=gw-2+is+gone"); got.ID != "h1" {
		t.Errorf("released %+v, want h1", got)
	}
	d.rented(t, podL4)
	for _, text := range []string{"reservation released by an operator", "gw-2 is gone", "/admin/spend/holds/release"} {
		if !strings.Contains(d.logs.String(), text) {
			t.Errorf("the log has no %q", text)
		}
	}
}
