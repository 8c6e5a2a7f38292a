package parity

import (
	"encoding/csv"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The export says for how many hours each resource was there at each of its rates, of network
// volumes for how many GB-hours, the agreed price, and that of the list.
func TestTheExportCountsHours(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", budgeted("{per_hour: 10}"), prices("{discount: 50}"))
	pod := d.rented(t, `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4"},"mounts":{"persistent":{"size":100,"path":"/w"}}}`)
	if a := d.ask(t, request("POST", "/v2/network-volumes", "key_platform", `{"name":"v","size":2000,"dataCenter":"EU-RO-1"}`)); a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	pass := func(span time.Duration) {
		t.Helper()
		d.advance(span)
		d.reconcile(t)
	}
	d.reconcile(t)
	pass(15 * time.Minute)
	pass(15 * time.Minute)
	if a := d.ask(t, request("POST", "/v2/pods/"+pod+"/action", "key_research", `{"action":"stop"}`)); a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	pass(6 * time.Minute)
	w := httptest.NewRecorder()
	q := httptest.NewRequestWithContext(t.Context(), "GET", "/admin/spend/export?org=acme&bucket=hour&from=2026-11-21T10:00:00Z&to=2026-11-21T11:00:00Z", nil)
	q.Host = "127.0.0.1"
	d.gateway.AdminHandler().ServeHTTP(w, q)
	table, err := csv.NewReader(w.Body).ReadAll()
	if err != nil || len(table) != 4 {
		t.Fatalf("%d rows of %q (%v), want one for each rate", len(table)-1, table, err)
	}
	got := make(map[string]string)
	for _, row := range table[1:] {
		text := func(column string) string { return row[slices.Index(table[0], column)] }
		number := func(column string) float64 {
			t.Helper()
			n, err := strconv.ParseFloat(text(column), 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		quantity, agreed, list := number("PricingQuantity"), number("ContractedUnitPrice"), number("ListUnitPrice")
		if number("ConsumedQuantity") != quantity || text("ConsumedUnit") != text("PricingUnit") {
			t.Errorf("row %q: consumed is not what was priced", row)
		}
		if math.Abs(quantity*agreed-number("ContractedCost")) > 2e-6 || math.Abs(quantity*list-number("ListCost")) > 2e-6 || number("ContractedCost") != number("BilledCost") {
			t.Errorf("row %q: quantities by prices are not the costs", row)
		}
		got[fmt.Sprintf("%s %.3f %s", text("ResourceType"), quantity, text("PricingUnit"))] = fmt.Sprintf("%.6f of %.6f", agreed, list)
	}
	want := map[string]string{
		"pod 0.500 Hours":                  "0.231439 of 0.446439",
		"pod 0.100 Hours":                  "0.027397 of 0.027397",
		"network_volume 1199.996 GB-Hours": "0.000082 of 0.000082",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("quantities and prices (-want +got):\n%s", diff)
	}
}
