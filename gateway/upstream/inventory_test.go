package upstream_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// account returns the client of a platform that answers GETs by their targets, and others with 404.
func account(t *testing.T, answers map[string]string) *upstream.Account {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := answers[r.RequestURI]
		if !ok || r.Header.Get("Authorization") != "Bearer "+secret {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(s.Close)
	return &upstream.Account{Upstream: newClient(t, lean, time.Minute, s.URL), Lists: []*schema.Operation{{ID: "listPods", Path: "/v2/pods"}, {ID: "listNetworkVolumes", Path: "/v2/network-volumes"}}}
}

// The inventory has all pages of the lists of the kinds asked for, with what each resource takes. Parts of clusters are
// left out.
func TestInventory(t *testing.T) {
	a := account(t, map[string]string{
		"/v2/pods":          `{"pods":[{"id":"a","name":"one","cloud":"SECURE","gpu":{"id":"L4","count":2}},{"id":"b","cluster":{"id":"k"}}],` + more("x") + `}`,
		"/v2/pods?cursor=x": `{"pods":[{"id":"d","cloud":"SECURE","gpu":{"id":"L4","count":1}}],` + last + `}`,
	})
	prices := catalog.NewSnapshot(catalog.Lists{GPUs: []catalog.GPU{{
		ID: "L4", Secure: catalog.Offer{Offered: true, MaxCount: 8, Price: catalog.Price{PerHour: 1_000_000, Known: true}},
	}}}, catalog.Rates{}, time.Unix(0, 0))
	pods := func(k operation.Kind) bool { return k == operation.KindPod }
	found, err := a.Inventory(t.Context(), "acme", new(ledger.Plan), pods, pods, prices)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string][2]int64)
	for _, f := range found {
		got[f.ID] = [2]int64{f.Amounts[ledger.GPUs], f.Amounts[ledger.Burn]}
	}
	if diff := cmp.Diff(map[string][2]int64{"a": {2, 2_000_000}, "d": {1, 1_000_000}}, got); diff != "" {
		t.Errorf("GPUs and USD per hour (-want +got):\n%s", diff)
	}
}

// An inventory with a list or page that cannot be read is unknown, and never short.
func TestInventoryIsWholeOrUnknown(t *testing.T) {
	every := func(operation.Kind) bool { return true }
	for name, answers := range map[string]map[string]string{
		"a list is missing":       {"/v2/pods": `{"pods":[],` + last + `}`},
		"a page is missing":       {"/v2/pods": `{"pods":[{"id":"a"}],` + more("x") + `}`, "/v2/network-volumes": `{"networkVolumes":[],` + last + `}`},
		"something without an id": {"/v2/pods": `{"pods":[{"name":"a"}],` + last + `}`, "/v2/network-volumes": `{"networkVolumes":[],` + last + `}`},
		"another organisation":    {},
	} {
		found, err := account(t, answers).Inventory(t.Context(), "acme", new(ledger.Plan), every, every, nil)
		if err == nil || found != nil || name == "something without an id" && !errors.Is(err, upstream.ErrUnreachable) {
			t.Errorf("%s: %+v, %v; want an error alone", name, found, err)
		}
	}
}
