package ui

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/money"
)

// A short request leads to the dry run by its address, which proxies limit to 8 KiB; a long one is submitted.
func TestDryRunOfALongRequest(t *testing.T) {
	t.Parallel()
	f := &frame{visit: hostileVisit("requests/x")}
	for _, tt := range []struct {
		length int
		post   bool
	}{{100, false}, {20_000, true}} {
		d := requestData{Pending: &approval.Record{Body: json.RawMessage(`{"name":"` + strings.Repeat("é", tt.length) + `"}`)}}
		d.Path, d.Method = "/v2/pods", "POST"
		b := d.dryRun(f)
		if tt.post != (b.Post == f.path+"dry-run") || tt.post != (b.Path == "") || len(b.Path) > maxAddress || tt.post && len(b.Hidden) != 5 {
			t.Errorf("%d letters: to %q by an address of %d bytes, or %q with %d fields", tt.length, b.Path[:min(20, len(b.Path))], len(b.Path), b.Post, len(b.Hidden))
		}
	}
}

// An approval request that could not be read is not called expired.
func TestApprovedUnknown(t *testing.T) {
	t.Parallel()
	f := &frame{visit: hostileVisit("requests/x")}
	d := requestData{Report: explain.Report{Approval: "ap-1"}}
	if text := d.Approved(f); text != "" {
		t.Errorf("unknown: %q", text)
	}
	if d.Expired = true; !strings.Contains(d.Approved(f), "has expired") {
		t.Errorf("expired: %q", d.Approved(f))
	}
}

// Days of costs are in UTC, and are called that in other zones.
func TestDaysOfCosts(t *testing.T) {
	t.Parallel()
	v := hostileVisit("cost")
	costs := &money.Costs{From: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2026, 11, 8, 0, 0, 0, 0, time.UTC)}
	v.period = period{Name: last7Days, From: costs.From, To: costs.To}
	for zone, want := range map[string]string{"": "day", "UTC": "day", "Europe/Berlin": "UTC day"} {
		v.scope.Orgs[0].Zone = zone
		if c := costChart(v, costs, "team"); c.Per != want {
			t.Errorf("in zone %q the chart is by %q, want %q", zone, c.Per, want)
		}
		d := costData{by: "team"}
		d.Chart.Buckets = bucketsOf(costs, "day")
		d.forecast(v, &money.Forecast{Budgets: []money.Budget{{Name: "per_day", Limit: "5"}}})
		if hasLimit := d.Chart.Limit != nil; hasLimit != (want == "day") {
			t.Errorf("in zone %q the chart has a daily budget: %t", zone, hasLimit)
		}
		if got := d.table(v).Columns[5].Title; got != "Trend by "+want {
			t.Errorf("in zone %q the table has %q", zone, got)
		}
	}
}

// The forecast of a day in another zone is not shown on a UTC day.
func TestForecastsOfDays(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	costs := &money.Costs{From: day.AddDate(0, 0, -6), To: day.Add(6 * time.Hour), Rows: []money.Cost{{Start: day, End: day.Add(6 * time.Hour), USD: "1"}}}
	f := &money.Forecast{Day: money.Estimate{Expected: "3"}}
	for zone, want := range map[string]bool{"UTC": true, "Europe/Berlin": false} {
		v := inBerlin()
		v.scope.Orgs[0].Zone, v.period = zone, period{Name: last7Days, From: costs.From, To: costs.To}
		var d costData
		d.Chart = costChart(v, costs, "team")
		d.forecast(v, f)
		if c := overviewChart(v, costs, f); (c.Forecast != nil) != want || (d.Chart.Forecast != nil) != want {
			t.Errorf("in zone %s: forecasts %v and %v, want any: %t", zone, c.Forecast, d.Chart.Forecast, want)
		}
	}
}

// The tile of today compares the forecast with yesterday, unless costs are of UTC days and the organisation's days are others.
func TestTodayIsComparedWithYesterday(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	rows := []money.Cost{{Start: day, End: day.AddDate(0, 0, 1), USD: "2"}, {Start: day.AddDate(0, 0, 1), End: day.Add(30 * time.Hour), USD: "1"}}
	var f overviewFacts
	f.costs.Is = money.Costs{From: day.AddDate(0, 0, -1), To: day.Add(30 * time.Hour), Rows: rows}
	for zone, want := range map[string]string{"UTC": "+50%", "Europe/Berlin": ""} {
		v := inBerlin()
		v.scope.Orgs[0].Zone, v.period = zone, period{Name: last7Days, From: day.AddDate(0, 0, -5), To: v.now()}
		tile := todayTile(v, &f, &money.Forecast{Day: money.Estimate{Expected: "3"}})
		got := ""
		if tile.Change != nil {
			got = tile.Change.Text()
		}
		if got != want || tile.Spark == nil {
			t.Errorf("in zone %s: change %q and sparkline %v, want the change %q and a sparkline", zone, got, tile.Spark, want)
		}
	}
}

// The average of callers begins with the time range, although its first UTC day begins earlier.
func TestOwnAverage(t *testing.T) {
	t.Parallel()
	v := inBerlin()
	from, to := time.Date(2026, 11, 23, 23, 0, 0, 0, time.UTC), time.Date(2026, 11, 30, 5, 0, 0, 0, time.UTC)
	v.period = period{Name: last7Days, From: from.In(v.zone()), To: to.In(v.zone())}
	costs := &money.Costs{From: from, To: to, Total: "12.50"}
	for usd, want := range map[string]string{"12.50": "over 6.2 days, since 24 Nov", "0": "over 5.2 days, since 25 Nov"} {
		day := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
		costs.Rows = []money.Cost{{Start: day, End: day.AddDate(0, 0, 1), USD: usd}, {Start: day.AddDate(0, 0, 2), End: day.AddDate(0, 0, 3), USD: "1"}}
		if tile := ownCostTiles(v, costs, nil)[1]; tile.Note != want {
			t.Errorf("%s on the first day: %s, want %s", usd, tile.Note, want)
		}
	}
}
