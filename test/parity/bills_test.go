package parity

import (
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/money"
)

// A sum that was counted at a wrong price becomes the platform's bill once the hours have closed,
// and not before; the log and a metric tell of it.
func TestCostsFollowTheBills(t *testing.T) {
	t.Parallel()
	wrong := func(d *door) {
		d.text = strings.Replace(d.text, "- id: acme\n", "- id: acme\n    prices: {gpus: {\"NVIDIA L4\": 4}}\n", 1)
	}
	eachDoor(t, func(t *testing.T, d *door) {
		id := d.rented(t, podL4)
		d.reconcile(t) // bills are followed from 11:00 on
		costs := func() map[string]string {
			out := make(map[string]string)
			for _, r := range asOperator[money.Costs](t, d, "GET", "/admin/spend/history?org=acme&by=resource&by=team&bucket=hour&from=2026-11-21T11:00:00Z&to=2026-11-21T15:00:00Z").Rows {
				out[r.Start.Format("15:04")] = r.USD
				if r.Resource != id || r.Team != "research" {
					t.Errorf("%+v, want %s of research alone", r, id)
				}
			}
			return out
		}
		d.advance(3*time.Hour + 30*time.Minute) // to 13:30
		d.reconcile(t)
		if got, want := costs()["11:00"], "4.00274"; got != want {
			t.Errorf("before it has closed, 11:00 has cost %s, want %s", got, want)
		}
		d.advance(90 * time.Minute)
		for range 2 {
			d.reconcile(t)
		}
		for hour, want := range map[string]string{"11:00": "0.43274", "12:00": "0.43274", "13:00": "4.00274", "14:00": "4.00274"} {
			if got := costs()[hour]; got != want {
				t.Errorf("%s has cost %s, want %s", hour, got, want)
			}
		}
		for _, s := range d.ledger(t).Scopes {
			if got, want := s.Day, "12.8737"; s.Scope == "team research" && got != want { // 5 hours, two of them corrected
				t.Errorf("today %s, want %s", got, want)
			}
		}
		if !strings.Contains(d.logs.String(), "corrected counted costs to match the platform's bills") {
			t.Error("the log does not tell of the correction")
		}
		metrics := ""
		for line := range strings.Lines(d.page(t, "/metrics")) {
			if strings.HasPrefix(line, `tollgate_ledger_corrected_USD_total{direction="less",org="acme"`) {
				metrics = line
			}
		}
		if !strings.HasSuffix(metrics, " 7.14\n") {
			t.Errorf("metric %q, want 7.14 USD less", metrics)
		}
	}, budgeted("{per_day: 100}"), wrong)
}
