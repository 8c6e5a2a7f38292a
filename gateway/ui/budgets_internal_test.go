package ui

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/alerts"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/gateway/selfservice"
)

// Counts and sizes are not labelled as money.
func TestBudgetBarLabels(t *testing.T) {
	for name, want := range map[string]string{
		"per_day":   "$3.00 used and $1.00 reserved of $8.00",
		"gpus":      "3 used and 1 reserved of 8",
		"volume_gb": "3 GB used and 1 GB reserved of 8 GB",
	} {
		b := money.BudgetRow{}
		b.Name, b.Used, b.Reserved, b.Limit = name, "3", "1", "8"
		if got := budgetBar(&b).Label; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// inBerlin returns a visit at 06:20 on 30 November in Berlin.
func inBerlin() *visit {
	now := time.Date(2026, 11, 30, 5, 20, 0, 0, time.UTC)
	c := &Console{path: Path, now: func() time.Time { return now }, rows: adminapi.NewTable(nil, adminapi.Direct{})}
	return &visit{
		Console: c, org: "acme", r: httptest.NewRequest(http.MethodGet, "/ui/?org=acme", http.NoBody),
		scope: adminapi.Principal{Orgs: []adminapi.Tenant{{ID: "acme", Zone: "Europe/Berlin"}}},
	}
}

// runsOutToday returns a budget that is expected to run out at 17:05 in Berlin.
func runsOutToday() money.BudgetRow {
	at, ends := time.Date(2026, 11, 30, 16, 5, 0, 0, time.UTC), time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC)
	return money.BudgetRow{
		Scope: "team research", Kind: "team", ID: "research", Percent: 88, UsedUpAt: &at, Ends: &ends,
		Budget:   money.Budget{Name: "per_month", Limit: "120", Used: "104.09", Reserved: "1.3", Left: "14.61", UsedUp: "2026-11-30"},
		Forecast: &money.Estimate{Low: "121", Expected: "126.92", High: "132"},
	}
}

// The month's tile names the basis of its forecast.
func TestForecastBasisOfAMonth(t *testing.T) {
	b := runsOutToday()
	for rate, want := range map[string]string{"1.25": "at the usual daily cost", "1.296": "at the current burn rate"} { // for 17 h 40 min
		f := &money.Forecast{PerHour: rate, Month: *b.Forecast, Budgets: []money.Budget{b.Budget}}
		if note := monthOf(inBerlin(), f).Note; note != "Forecast $126.92 "+want {
			t.Errorf("%s per hour: %q, want %q", rate, note, want)
		}
	}
}

// The outlook of a budget is a verdict in the zone of the organisation, and its amounts add up.
func TestOutlookOfBudgets(t *testing.T) {
	v := inBerlin()
	today, later, full, steady := runsOutToday(), runsOutToday(), runsOutToday(), runsOutToday()
	steady.PerHour, today.PerHour = "1.296", "1.25" // for 17 h 40 min
	later.UsedUp, later.Used, later.Reserved = "2026-12-12", "66.43", "0"
	full.Used = "119"
	hourly := money.BudgetRow{Scope: "team research", Budget: money.Budget{Name: "per_hour", Limit: "10", Used: "1.29822", Reserved: "0", Left: "8.70178"}}
	for _, tt := range []struct {
		b                          money.BudgetRow
		level, verdict, sub, taken string
	}{
		{today, levelBad, "Runs out today, about 17:00", "at the usual daily cost, $6.92 over, resets 1 Dec", "$104.09 + $1.30 of $120.00"},
		{later, levelBad, "Runs out 12 Dec", "at the usual daily cost, $6.92 over, resets 1 Dec", "$66.43 of $120.00"},
		{steady, levelBad, "Runs out today, about 17:00", "at the current burn rate, $6.92 over, resets 1 Dec", "$104.09 + $1.30 of $120.00"},
		{full, levelBad, "Used up", "resets 1 Dec", "$119.00 + $1.30 of $120.00"},
		{hourly, "", "Limit on the burn rate", "does not reset", "running now $1.30 per hour of $10.00"},
	} {
		c := outlook(v, &tt.b)
		got := []string{"", c.Text, c.Sub, takenText(&tt.b)}
		if c.Status != nil {
			got[0], got[1] = c.Status.Level, c.Status.Word
		}
		if diff := cmp.Diff([]string{tt.level, tt.verdict, tt.sub, tt.taken}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// Budgets that run out are the first entries that need attention, and the tile of the month counts their teams.
func TestBudgetsThatRunOutNeedAttention(t *testing.T) {
	v := inBerlin()
	org := money.BudgetRow{Scope: "organisation", Kind: "organisation", Budget: money.Budget{Name: "per_month", Limit: "500", Used: "267", Reserved: "1.7", Left: "231.3"}}
	f := &overviewFacts{}
	f.budgets.Is.Budgets = []money.BudgetRow{runsOutToday(), org}
	x := newAttention(v, f).Items
	if len(x) != 1 || x[0].Title != "Team research: monthly budget runs out today, about 17:00" || x[0].Text != "7 h before it resets · forecast $126.92 of $120.00 at the usual daily cost" {
		t.Errorf("attention: %+v", x)
	}
	if now := newAlertData(v, &alerts.AlertList{}, f.budgets, nil).Now.Items; len(now) != 1 || now[0].Title != x[0].Title {
		t.Errorf("alerts: %+v", now)
	}
	tile := monthTile(v, f, &money.Forecast{ThisMonth: "267"})
	if tile.Status.Word != "1 team will run out" || tile.Status.Level != levelWarn || tile.Unit != "+ $1.70 reserved of $500.00" {
		t.Errorf("tile: %+v %+v", tile, tile.Status)
	}
	me := selfservice.Budget{UsedUp: "2026-11-30", UsedUpAt: runsOutToday().UsedUpAt, Forecast: runsOutToday().Forecast}
	me.Scope, me.Name, me.Limit, me.Used, me.Reserved, me.Left, me.Ends = "team research", "per_month", "120", "104.09", "1.3", "14.61", runsOutToday().Ends
	own := &myFacts{}
	own.me.Is.Budgets = []selfservice.Budget{me}
	if mine := myAttention(v, own).Items; len(mine) != 1 || mine[0].Title != x[0].Title || mine[0].Text != x[0].Text {
		t.Errorf("attention of a caller: %+v", mine)
	}
	if rest := overScopes([]*money.BudgetRow{{Kind: "team", Scope: "team a"}, {Kind: "team", Scope: "team a"}, {Kind: "key", Scope: "key b"}, {Kind: "organisation", Scope: "organisation"}}); rest != "1 team, 1 key will run out" {
		t.Errorf("scopes: %q", rest)
	}
}

// Nothing fits into a budget that running resources use up.
func TestNothingFits(t *testing.T) {
	v, d := inBerlin(), budgetData{}
	d.Fits.Is = operator.Fits{Left: "14.61", Free: "-7.2", Budget: "team research, per_month", Resets: runsOutToday().Ends, GPUs: []operator.GPUFit{{GPU: "L4", Hours: "0.0"}}}
	d.fits(v, &money.Costs{})
	if want := "$14.61 remain in the budget that leaves the least for new resources (team research, per month). It resets at 2026-12-01 00:00 CET. Nothing fits: running resources already use it up."; d.FitsText != want || d.FitsTable != nil {
		t.Errorf("%q, %+v; want %q", d.FitsText, d.FitsTable, want)
	}
	for denied, want := range map[int]string{
		0: "If running resources continue until then, $3.00 is left for new ones; the number of GPUs at once is for the time until then. Of the policies, only gpu_allow_list is considered.",
		2: " Of the policies, only gpu_allow_list is considered: it denies 2 other GPU types.",
	} {
		d.Fits.Is.Free, d.Fits.Is.Denied = "3", denied
		if got := fitsText(v, &d.Fits.Is); !strings.HasSuffix(got, want) {
			t.Errorf("%q does not end with %q", got, want)
		}
	}
	d.Fits.Is.PerHour, d.Fits.Is.HourlyBudget = "0.64", "team research, per_hour"
	if got, want := fitsText(v, &d.Fits.Is), " New resources can cost at most $0.64 per hour (team research, per hour)."; !strings.Contains(got, want) {
		t.Errorf("%q lacks %q", got, want)
	}
}

// The panel of what fits is about the selected team, or otherwise the first.
func TestTheTeamOfWhatFits(t *testing.T) {
	for _, tt := range []struct {
		teams       []string
		query, want string
	}{{nil, "", ""}, {[]string{"ml", "research"}, "", "ml"}, {[]string{"ml", "research"}, "&team=research", "research"}} {
		v := inBerlin()
		v.scope.Orgs[0].Teams = tt.teams
		v.r = httptest.NewRequest(http.MethodGet, "/ui/budgets?org=acme"+tt.query, http.NoBody)
		got, _, _ := loadBudgets(v)
		if d, _ := got.(budgetData); d.FitsTeam != tt.want {
			t.Errorf("%v, %q: team %q, want %q", tt.teams, tt.query, d.FitsTeam, tt.want)
		}
	}
}

// The duration is shown only if a GPU cannot run until the budget resets.
func TestColumnsOfGPUsThatFit(t *testing.T) {
	none, two := int64(0), int64(2)
	for _, tt := range []struct {
		n    *int64
		want int
	}{{&two, 3}, {&none, 4}, {nil, 4}} {
		got := fitColumns([]operator.GPUFit{{GPU: "L4", UntilReset: &two}, {GPU: "H100", UntilReset: tt.n}}, true)
		if len(got) != tt.want || got[tt.want-1].Title != "GPUs at once until the reset" {
			t.Errorf("%v: %d columns, the last is %q, want %d", tt.n, len(got), got[len(got)-1].Title, tt.want)
		}
	}
}

// A small earlier count is shown instead of a percentage.
func TestChangesOfSmallCounts(t *testing.T) {
	for want, c := range map[string]*change{"was 2": changeOfCount(11, 2, ""), "+450%": changeOfCount(110, 20, ""), "−50%": changeOfCount(5, 10, "")} {
		if got := c.Text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if c := changeOfCount(3, 0, ""); c != nil {
		t.Errorf("from nothing: %+v", c)
	}
}

// A bucket that has not ended is left out of lines.
func TestLinesEndWithAWholeBucket(t *testing.T) {
	v := inBerlin() // 05:20 UTC
	values := []float64{1, 2, 3}
	for at, want := range map[time.Time]int{v.now(): 2, v.now().Truncate(time.Hour): 3, v.now().AddDate(0, 0, -5): 3, v.now().AddDate(0, 0, 1): 2} {
		if got := v.whole(&money.Costs{To: at}, values); len(got) != want {
			t.Errorf("up to %s: %v, want %d", at, got, want)
		}
	}
}
