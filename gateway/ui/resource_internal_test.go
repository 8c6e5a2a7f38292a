package ui

import (
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/money"
)

// Each kind of idle resource has a call that ends its cost.
func TestStopCalls(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind    string
		running bool
		want    string
	}{
		{"pod", true, `curl -X POST "$TOLLGATE_URL/v2/pods/a%2Fb/action"`},
		{"pod", false, `curl -X DELETE "$TOLLGATE_URL/v2/pods/a%2Fb"`},
		{"endpoint", true, `-d '{"workers": {"min": 0}}'`},
		{"network_volume", true, `curl -X DELETE "$TOLLGATE_URL/v2/network-volumes/a%2Fb"`},
		{"job", true, ""},
	} {
		stop, hint := stopCall(tt.kind, "a/b", tt.running)
		if (stop == nil) != (tt.want == "") || stop != nil && (!strings.Contains(stop.Text, tt.want) || hint == "") {
			t.Errorf("%s, running %t: %v %q, want %q", tt.kind, tt.running, stop, hint, tt.want)
		}
	}
}

// The list of idle resources leads to the way to stop them, and has no monthly projection in the first hour.
func TestIdleTable(t *testing.T) {
	t.Parallel()
	v := hostileVisit("idle")
	idleSince := func(id string, ago time.Duration) money.IdleResource {
		return money.IdleResource{ID: id, Kind: "pod", Idle: money.Idle{Since: v.now().Add(-ago), PerMonth: "315.9", Cost: "0.2"}}
	}
	rows := idleTable(v, []money.IdleResource{idleSince("p1", 59*time.Minute), idleSince("p2", 2*time.Hour)}).Rows
	for i, want := range []string{"", "$315.90 per month if it stays idle"} {
		c := rows[i].Cells
		if c[4].Text != "$0.43 per hour" || c[4].Sub != want || !strings.HasSuffix(c[5].Links[0].Path, "#stop") {
			t.Errorf("row %d: %+v %+v, want %q and a link to the way to stop", i, c[4], c[5].Links, want)
		}
	}
}

// A resource without costs in the range is linked with a range that includes its costs.
func TestLinksToResources(t *testing.T) {
	t.Parallel()
	v := inBerlin()
	v.r.URL.RawQuery, v.period.Chosen = "org=acme&range=mtd", true
	d := costData{by: "resource"}
	d.Compared.Is.PreviousFrom, d.Compared.Is.To = v.now().AddDate(0, 0, -2), v.now()
	for _, tt := range []struct{ usd, want string }{
		{"0.5", "/ui/resources/p1?org=acme&range=mtd"},
		{"0", "/ui/resources/p1?from=2026-11-28T05%3A20%3A00Z&org=acme&to=2026-11-30T05%3A20%3A00Z"},
	} {
		c := money.ComparedCost{CostGroup: money.CostGroup{Resource: "p1", Kind: "pod"}, USD: tt.usd, Previous: "1"}
		if got := d.drill(v, &c); got != tt.want {
			t.Errorf("a cost of %s: %s, want %s", tt.usd, got, tt.want)
		}
	}
}
