package ui

import (
	"flag"
	"html/template"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// guideData has each component in each of its states.
type guideData struct {
	Buttons []button
	States  []string
	Notes   []note
	Tiles   []tile
	Bars    []bar
	Filters form
	Chips   []chip
	Form    form
	Table   table
	Empty   table
	Facts   []fact
	Code    code
}

// Head implements headed.
func (guideData) Head(*frame) head {
	badge := statusOf("pending")
	return head{
		Title: "Style guide", Text: "Each component in each of its states.", Badge: &badge,
		Parents: []link{{Title: "Overview", Path: "/ui/"}},
		Tabs:    []tab{{Title: "First", Path: "/ui/?tab=1", Here: true, Count: "12"}, {Title: "Second", Path: "/ui/?tab=2"}},
		Actions: []button{{Title: "Export CSV", Icon: "download", Path: "/ui/cost.csv"}, {Title: "Create key", Icon: "plus", Path: "/ui/keys/new", Main: true}},
	}
}

// guideRow is a row of the table.
type guideRow struct {
	Name, State, USD string
	At               time.Time
	Share            float64
}

func newGuide(v *visit) guideData {
	now := v.now()
	rows := []guideRow{
		{"train", "allowed", "1234.5", now.Add(-3 * time.Minute), 0.62},
		{"notebook", "refused", "0.004", now.Add(-26 * time.Hour), 0.3},
		{"a name without any space that is longer than most of them", "pending", "17", now.Add(2 * time.Hour), 0.08},
	}
	columns := []column[guideRow]{
		{Key: "name", Title: "Name", Sort: true, Value: func(r *guideRow) any { return r.Name }, Cell: func(r *guideRow) cell { return textCell(r.Name, "NVIDIA L4", "EU-1") }},
		{Key: "state", Title: "State", Cell: func(r *guideRow) cell { return statusCell(r.State) }},
		{Key: "cost", Title: "Cost", Sort: true, Number: true, Value: func(r *guideRow) any { return dollars(r.USD) }},
		{Key: "share", Title: "Share", Number: true, Cell: func(r *guideRow) cell { return cell{Share: shareOf(r.Share)} }},
		{Key: "trend", Title: "Trend", Cell: func(*guideRow) cell { return cell{Spark: newSpark([]float64{1, 4, 2, 8}, "Cost by day")} }},
		{Key: "place", Title: "Place", Off: true, Cell: func(*guideRow) cell { return codeCell("EU-1") }},
		{Key: "used", Title: "Last used", Value: func(r *guideRow) any { return r.At }},
		{Title: "Actions", Cell: func(r *guideRow) cell {
			return cell{Menu: "Actions", Forms: []form{v.post("spend/snooze", r.Name, "Snooze", field{Name: "for", Label: "Snooze for", Value: "24h"})}}
		}},
	}
	spec := tableSpec[guideRow]{
		Name: "guide", Caption: "Resources", Columns: columns, Whole: true, Path: func(*guideRow) string { return "/ui/resources" }, Muted: func(r *guideRow) bool { return r.State == "refused" },
		Empty: empty{Icon: "server", Title: "No resources yet", Text: "Pods and endpoints appear here after the first call that creates one.", Code: &code{"the call to try", "curl -X POST …"}, Next: &button{Title: "Read the guide", Path: "/ui/"}},
	}
	g := guideData{
		Buttons: []button{{Title: "Default", Path: "/ui/"}, {Title: "Main", Path: "/ui/", Main: true}, {Title: "Danger", Path: "/ui/", Danger: true}, {Title: "Form", Icon: "refresh", Post: "/ui/spend/reconcile", Hidden: []hiddenField{{"org", "acme"}}}},
		States:  []string{"allowed", "refused", "pending", "excepted", "stopped"},
		Notes:   []note{{levelInfo, "An information"}, {levelGood, "A success"}, {levelWarn, "A warning"}, {levelBad, "A fault"}},
		Tiles: []tile{
			{Label: "Burn rate", Value: "$12.40", Unit: "per hour", Change: changeOf(12.4, 10, "an hour ago"), Spark: newSpark([]float64{3, 5, 4, 9}, "Burn rate of 24 hours"), Path: "/ui/cost"},
			{Label: "Month to date", Value: "$1,204.00", Note: "$2,000.00 budget", Bar: &[]bar{newBar(2000, 1204, 96, 2100)}[0], Change: changeOf(9, 10, "last month")},
			{Label: "Denied", Value: "0", Change: changeOf(10, 10, "yesterday")},
			{Label: "Throttled", Fault: "The shared store does not answer."},
		},
		Bars:    []bar{newBar(10, 5, 1, 0), newBar(10, 8, 0, 9), newBar(10, 5, 1, 12), newBar(10, 11, 2, 0), newBar(0, 0, 0, 0)},
		Filters: v.filters(field{Name: "team", Label: "Team", Type: "select", Options: names("All teams", []string{"research", "ml"}, "")}, field{Name: "key", Label: "Key"}, field{Name: "refused", Label: "Denied only", Type: "checkbox"}),
		Form: v.post("keys/create", "", "Create key", field{Name: "id", Label: "Name", Required: true, Max: 64, Hint: "Letters, digits and hyphens"}, field{Name: "expires", Label: "Expires", Type: "date"},
			field{Name: "limit", Label: "Requests per minute", Type: "number"}, field{Name: "roles", Label: "Roles", Type: "checks", Options: options([]string{"viewer", "lead"}, "viewer")}, field{Name: "note", Label: "Note", Type: "textarea", Wide: true}),
		Table: newTable(v, rows, spec), Empty: newTable(v, nil, spec),
		Facts: []fact{{"Owner", textCell("ann")}, {"State", statusCell("granted")}, {"Created", v.whenCell(now.Add(-time.Hour))}, {"ID", codeCell("01M84TG8488HTPRJ2EYM7Q01FJ")}},
		Code:  code{"a request", "curl https://gateway.example/v2/pods"},
	}
	g.Chips = v.chips(g.Filters)
	return g
}

var rewrite = flag.Bool("update-styleguide", false, "rewrite the golden style guide")

// The style guide has every component in every state, and stays as it was. test/browser compares its picture.
func TestStyleGuide(t *testing.T) {
	t.Parallel()
	directory, err := admin.NewDirectory("a-token-of-the-tests", nil)
	if err != nil {
		t.Fatal(err)
	}
	orgs := []adminapi.Tenant{{ID: "acme", Teams: []string{"research", "ml"}, Zone: "Europe/Berlin"}, {ID: "globex"}}
	now := time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC)
	guard := &admin.Guard{Admins: func() *admin.Directory { return directory.WithOrgs(orgs) }, Now: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler)}
	c := New(guard, adminRows(), nil, 35)
	guide := template.Must(newShell(Path).ParseFiles("testdata/styleguide.html"))
	w := httptest.NewRecorder()
	v := &visit{
		Console: c, w: w, r: httptest.NewRequest(http.MethodGet, "/ui/styleguide?org=acme&team=research&sort=-cost&range=7d", http.NoBody), org: "acme",
		scope: adminapi.Principal{Name: "root", Roles: []adminapi.Role{adminapi.Admin}, Orgs: orgs}, badges: badges{approvals: 2, drift: 1},
	}
	_ = v.enter(&page{name: "styleguide", period: last7Days}) // the time range is valid
	f := frame{visit: v, Title: "Style guide", Page: "overview", Done: "Key batch is revoked.", Failure: "The form could not be sent.", Data: newGuide(v)}
	if err := guide.ExecuteTemplate(w, "layout", &f); err != nil {
		t.Fatal(err)
	}
	got := regexp.MustCompile(`\?v=[0-9a-f]+`).ReplaceAllString(w.Body.String(), "?v=...")
	const file = "testdata/styleguide.golden"
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("style guide (-want +got):\n%s", diff)
	}
	if found := runs(t, got, Path); len(found) > 0 {
		t.Errorf("the style guide has %q", found)
	}
}

// The time range is read from the address, in the organisation's zone; the last day of a custom range is included.
func TestPeriods(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 9, 23, 30, 0, 0, time.UTC) // the 10th in Berlin
	for query, want := range map[string][3]string{
		"":                                 {last7Days, "2026-11-04T00:00:00+01:00", "2026-11-10T00:30:00+01:00"},
		"range=1h":                         {lastHour, "2026-11-09T23:30:00+01:00", "2026-11-10T00:30:00+01:00"},
		"range=mtd":                        {monthToDate, "2026-11-01T00:00:00+01:00", "2026-11-10T00:30:00+01:00"},
		"range=last-month":                 {lastMonth, "2026-10-01T00:00:00+02:00", "2026-11-01T00:00:00+01:00"},
		"from=2026-11-02&to=2026-11-03":    {customPeriod, "2026-11-02T00:00:00+01:00", "2026-11-04T00:00:00+01:00"},
		"from=2026-11-08":                  {customPeriod, "2026-11-08T00:00:00+01:00", "2026-11-10T00:30:00+01:00"},
		"from=2026-11-09T22:00:00Z":        {customPeriod, "2026-11-09T23:00:00+01:00", "2026-11-10T00:30:00+01:00"},
		"from=2026-11-05&to=2026-11-03":    {customPeriod, "2026-11-05T00:00:00+01:00", "2026-11-04T00:00:00+01:00"},
		"from=2026-11-11&to=2026-11-12":    {customPeriod, "2026-11-11T00:00:00+01:00", "2026-11-13T00:00:00+01:00"},
		"from=2026-11-11":                  {customPeriod, "2026-11-11T00:00:00+01:00", "2026-11-10T00:30:00+01:00"},
		"range=forever":                    {last7Days, "2026-11-04T00:00:00+01:00", "2026-11-10T00:30:00+01:00"},
		"from=2026-11-01&range=24h&to=abc": {last24Hours, "2026-11-09T00:30:00+01:00", "2026-11-10T00:30:00+01:00"},
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		p := newPeriod(q, last7Days, now, berlin)
		if got := [3]string{p.Name, p.From.Format(time.RFC3339), p.To.Format(time.RFC3339)}; got != want {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
		if valid := p.From.Before(p.To) && p.From.Before(now); valid != (p.Fault == "") || p.Fault != "" && p.Chosen {
			t.Errorf("%q: fault %q, chosen %t", query, p.Fault, p.Chosen)
		}
	}
}

// Costs of a range whose hours are no longer stored are of UTC days with the same dates.
func TestPeriodsOfOldCosts(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 9, 30, 0, 0, time.UTC) // hours since 26 October at 09:00 are stored
	for _, c := range []struct {
		zone, query, from, to string
		days                  bool
		bucket                string
	}{
		{"UTC", "from=2026-10-10&to=2026-10-10", "2026-10-10T00:00:00Z", "2026-10-11T00:00:00Z", true, "day"},
		{"UTC", "from=2026-10-10&to=2026-10-12", "2026-10-10T00:00:00Z", "2026-10-13T00:00:00Z", false, "day"},
		{"UTC", "from=2026-10-26T08:00:00Z&to=2026-10-26T10:00:00Z", "2026-10-26T00:00:00Z", "2026-10-27T00:00:00Z", true, "day"},
		{"UTC", "from=2026-10-26T09:00:00Z&to=2026-10-26T10:00:00Z", "2026-10-26T09:00:00Z", "2026-10-26T10:00:00Z", false, "hour"},
		{"UTC", "from=2026-10-10", "2026-10-10T00:00:00Z", "2026-11-30T09:30:00Z", false, "day"},
		{"Europe/Berlin", "range=last-month", "2026-10-01T00:00:00Z", "2026-10-31T23:00:00Z", true, "day"},
		{"Europe/Berlin", "from=2026-10-01&to=2026-10-20", "2026-10-01T00:00:00Z", "2026-10-21T00:00:00Z", true, "day"},
		{"Europe/Berlin", "range=mtd", "2026-10-31T23:00:00Z", "2026-11-30T09:30:00Z", false, "day"},
		{"Pacific/Auckland", "from=2026-10-01&to=2026-10-01", "2026-10-01T00:00:00Z", "2026-10-02T00:00:00Z", true, "day"},
		{"America/Los_Angeles", "from=2026-10-25&to=2026-10-26", "2026-10-25T00:00:00Z", "2026-10-27T00:00:00Z", true, "day"},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		q, err := url.ParseQuery(c.query)
		if err != nil {
			t.Fatal(err)
		}
		p := newPeriod(q, last30Days, now, zone).stored(now, 35)
		from, to := p.From.UTC().Format(time.RFC3339), p.To.UTC().Format(time.RFC3339)
		if from != c.from || to != c.to || p.Days != c.days || p.Bucket() != c.bucket {
			t.Errorf("%s %s: %s to %s, days %t, by %s; want %s to %s, %t, %s", c.zone, c.query, from, to, p.Days, p.Bucket(), c.from, c.to, c.days, c.bucket)
		}
	}
	if p := (period{From: now.Add(-24 * time.Hour), To: now}).stored(now, 1); p.Days {
		t.Error("the last 24 hours are no longer stored")
	}
}

// A bar shows the used and reserved shares of a limit, and where the period is likely to end.
func TestBars(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		bar  bar
		want bar
	}{
		{newBar(10, 5, 1, 0), bar{"50.0", "10.0", "50.0", "", false, 60, levelGood, "$5.00 used and $1.00 reserved of $10.00"}},
		{newBar(10, 8, 0, 0), bar{"80.0", "0.0", "80.0", "", false, 80, levelWarn, "$8.00 used and $0.00 reserved of $10.00"}},
		{newBar(10, 5, 0, 12.5), bar{"50.0", "0.0", "50.0", "100.0", true, 50, levelWarn, "$5.00 used and $0.00 reserved of $10.00, $12.50 forecast"}},
		{newBar(10, 20, 5, 0), bar{"100.0", "0.0", "100.0", "", false, 250, levelBad, "$20.00 used and $5.00 reserved of $10.00"}},
		{newBar(120, 104.4, 1.3, 126), bar{"87.0", "1.1", "87.0", "100.0", true, 88, levelWarn, "$104.40 used and $1.30 reserved of $120.00, $126.00 forecast"}},
		{newBar(10, 0, 1.296, 0), bar{"0.0", "13.0", "0.0", "", false, 13, levelGood, "$0.00 used and $1.30 reserved of $10.00"}},
		{newBar(1000, 996, 0, 0), bar{"99.6", "0.0", "99.6", "", false, 100, levelWarn, "$996.00 used and $0.00 reserved of $1,000.00"}},
	} {
		if diff := cmp.Diff(c.want, c.bar); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// Amounts have separators and two decimals; small ones keep their digits.
func TestAmounts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "0": "$0.00", "1234.5": "$1,234.50", "1234567.891": "$1,234,567.89", "-3": "-$3.00", "0.000012": "less than $0.01", "999.999": "$1,000.00"} {
		if got := amount(text); got != want {
			t.Errorf("amount(%q) = %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{"": "", "1.72": "1.72", "1.72274": "1.73", "0.003": "0.01", "10": "10.00"} {
		if got := usdLimit(text); got != want {
			t.Errorf("usdLimit(%q) = %q, want %q", text, got, want)
		}
	}
}
