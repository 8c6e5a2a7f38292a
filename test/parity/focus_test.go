package parity

import (
	"encoding/csv"
	"math"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The export says for how many hours each resource was there at each of its rates.
func TestTheExportCountsHours(t *testing.T) {
	d := openDoor(t, "http", func(d *door) {
		d.text = strings.Replace(d.text, "credential: {env: ACME}", "credential: {env: ACME}\n    budget: {per_hour: 10}", 1)
	})
	pod := d.rented(t, `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4"},"mounts":{"persistent":{"size":100,"path":"/w"}}}`)
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
	if err != nil || len(table) != 3 {
		t.Fatalf("%d rows of %q (%v), want one for each rate", len(table)-1, table, err)
	}
	number := func(row int, column string) float64 {
		t.Helper()
		n, err := strconv.ParseFloat(table[row][slices.Index(table[0], column)], 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	hours := make([]float64, 0, 2)
	for row := 1; row <= 2; row++ {
		if unit := table[row][slices.Index(table[0], "PricingUnit")]; unit != "Hours" || number(row, "ConsumedQuantity") != number(row, "PricingQuantity") {
			t.Errorf("row %q, want hours", table[row])
		}
		if cost := number(row, "BilledCost"); math.Abs(number(row, "PricingQuantity")*number(row, "ContractedUnitPrice")-cost) > 2e-6 {
			t.Errorf("row %q: hours by rate are not the cost", table[row])
		}
		hours = append(hours, math.Round(number(row, "PricingQuantity")*1000)/1000)
	}
	slices.Sort(hours)
	if hours[0] != 0.1 || hours[1] != 0.5 {
		t.Errorf("hours %v, want 0.1 stopped and 0.5 running", hours)
	}
}
