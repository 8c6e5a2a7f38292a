package ui

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/alerts"
	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/legacy"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/gateway/selfservice"
)

// hostile is markup that would run in an element, in an attribute with any quotes or without, and in a template.
const hostile = `<script>alert(1)</script>"><img src=x onerror=alert(1)>'><svg/onload=alert(1)> onfocus=alert(1) javascript:alert(1) {{.}} </textarea></title>`

// fill puts hostile text into every field of a value, two entries into every list, and numbers that show all there is.
func fill(v reflect.Value, depth int) {
	if depth > 8 || !v.CanSet() {
		return
	}
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Unix(1_800_000_000, 0)))
		return
	}
	if v.Type() == reflect.TypeFor[json.RawMessage]() {
		text, _ := json.Marshal(map[string]string{hostile: hostile})
		v.SetBytes(text)
		return
	}
	switch v.Kind() { //nolint:exhaustive // answers have no other kinds
	case reflect.String:
		v.SetString(hostile)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Float64:
		v.SetFloat(3)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field, depth+1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), depth+1)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth+1)
		fill(value, depth+1)
		v.SetMapIndex(key, value)
	case reflect.Interface:
		v.Set(reflect.ValueOf(hostile))
	}
}

// filled returns a value of a type that is full of hostile text.
func filled[T any]() any {
	v := reflect.New(reflect.TypeFor[T]()).Elem()
	fill(v, 0)
	return v.Interface()
}

// of returns an answer that has hostile text and no fault.
func of[T any]() part[T] {
	return part[T]{Is: filled[T]().(T)}
}

// runs returns markup of a page of a console that would run, or that no template has.
func runs(t *testing.T, page, console string) (found []string) {
	t.Helper()
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		kind := z.Next()
		if kind == html.ErrorToken {
			return found
		}
		token := z.Token()
		if kind == html.StartTagToken || kind == html.SelfClosingTagToken {
			if token.String() == `<script src="/ui/live.js" defer="">` {
				continue // the gateway's own
			}
			if slices.Contains([]string{"script", "img", "iframe", "object", "base", "style"}, token.Data) {
				found = append(found, token.String())
			}
			for _, a := range token.Attr {
				if strings.HasPrefix(a.Key, "on") || a.Key == "style" || slices.Contains([]string{"href", "action", "src"}, a.Key) && !strings.HasPrefix(a.Val, console) && !strings.HasPrefix(a.Val, "#") {
					found = append(found, token.String())
				}
			}
		}
	}
}

// Nothing that a caller has named becomes markup, on any page, in any field.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	directory, err := admin.NewDirectory("a-token-of-the-tests", nil)
	if err != nil {
		t.Fatal(err)
	}
	orgs := []adminapi.Tenant{{ID: hostile, Teams: []string{hostile}, Policies: []string{hostile}}, {ID: "acme"}}
	guard := &admin.Guard{Admins: func() *admin.Directory { return directory.WithOrgs(orgs) }, Now: time.Now, Logger: slog.New(slog.DiscardHandler)}
	c := New(guard, adminRows(), nil)
	costs := part[money.Costs]{Is: filled[money.Costs]().(money.Costs)}
	costs.Is.Rows[0].USD, costs.Is.Rows[1].USD = "2", "1"
	sums := groups(&costs.Is, &costs.Is, "team,label:x")
	held := of[explain.Audit]()
	keys := filled[callers.List]().(callers.List)
	keys.Keys[0].Revoked = time.Time{}
	told, ends := of[alerts.AlertList](), of[alerts.ExceptionList]()
	config := configData{ActiveConfig: filled[operator.ActiveConfig]().(operator.ActiveConfig), File: of[operator.ConfigDiff](), Before: of[operator.ConfigDiff](), Revisions: filled[[]operator.Revision]().([]operator.Revision)}
	config.Before.Is.Fault = ""
	requests := filled[[]approval.Record]().([]approval.Record)
	requests[0].State, requests[1].State = approval.Pending, approval.Granted
	ledger := of[money.Ledger]()
	resources := resourceData{Ledger: ledger, Shown: excerpt[money.Resource]{Rows: ledger.Is.Resources, Before: hostile, After: hostile}, Holds: excerpt[money.Hold]{Rows: ledger.Is.Holds}, Idle: of[money.IdleList](), idle: map[string]money.IdleResource{hostile: filled[money.IdleResource]().(money.IdleResource)}}
	dry := filled[dryRun]().(dryRun)
	shown := map[string]any{
		"now":           nowData{Overview: of[operator.Overview](), Ledger: ledger, Dearest: costs, Forecasts: of[money.Forecasts](), Refused: of[decisions.List](), Alerts: told, Exceptions: ends},
		"alerts":        alertData{told.Is, ends},
		"spend":         spendData{Costs: costs, Before: costs, Forecasts: of[money.Forecasts](), Groups: sums, Shown: excerpt[sum]{Rows: sums}, Chart: newChart(&costs.Is, "team,label:x", sums), By: hostile, Bucket: hostile, CSV: "/ui/spend.csv?" + hostile},
		"resources":     resources,
		"decisions":     filled[decisionData](),
		"decision":      filled[explain.Report](),
		"explain":       dry,
		"approvals":     excerpt[approval.Record]{Rows: requests},
		"keys":          keys,
		"secret":        filled[secret](),
		"limits":        excerpt[operator.Window]{Rows: filled[[]operator.Window]().([]operator.Window)},
		"policies":      policyData{Policies: filled[[]policyWeek]().([]policyWeek), Counts: of[decisions.PolicyCounts](), Teams: filled[[]decisions.PolicyCount]().([]decisions.PolicyCount), Held: &held},
		"playground":    filled[playground](),
		"configuration": config,
		"audit":         filled[audit.Page](),
		"legacy":        legacyData{excerpt[legacy.Call]{Rows: filled[[]legacy.Call]().([]legacy.Call)}, filled[[]legacy.Brownout]().([]legacy.Brownout)},
		"fleet":         filled[fleetData](),
		"login":         filled[loginData](),
		"fault":         nil,
		"confirm":       &confirmation{Action: "/ui/keys/revoke", Fields: url.Values{hostile: {hostile}}, Text: hostile, Button: hostile},
	}
	requested := excerpt[selfservice.Request]{Rows: []selfservice.Request{{Record: requests[0], MayGrant: true}, {Record: requests[1], MayDeny: true}}}
	own := filled[[]selfservice.Resource]().([]selfservice.Resource)
	me := filled[selfservice.Me]().(selfservice.Me)
	team := map[string]any{
		"my":          myData{Me: me, Scopes: filled[[]scopeBudgets]().([]scopeBudgets)},
		"myspend":     shown["spend"],
		"myresources": myResourceData{Shown: excerpt[selfservice.Resource]{Rows: own, Before: hostile}},
		"mydecisions": shown["decisions"],
		"mydecision":  filled[selfservice.Decision](),
		"myapprovals": requested,
		"mykeys":      excerpt[teamKey]{Rows: filled[[]teamKey]().([]teamKey)},
		"secret":      shown["secret"],
		"login":       shown["login"],
		"fault":       nil,
		"confirm":     &confirmation{Action: "/tollgate/ui/keys/revoke", Fields: url.Values{hostile: {hostile}}, Text: hostile, Button: hostile},
	}
	ofCallers := NewTeam(Team{Now: time.Now, Encrypted: func(*http.Request) bool { return false }, Logger: slog.New(slog.DiscardHandler)}, nil)
	known := make(map[string]bool)
	for name, data := range team {
		known[name] = true
		v := &visit{Console: ofCallers, scope: adminapi.Principal{Name: hostile}, session: session{Lead: true}}
		hold(t, v, name, data)
	}
	for name := range templates() {
		data, ofOperators := shown[name]
		if !ofOperators {
			if !known[name] {
				t.Errorf("page %s has no data here", name)
			}
			continue
		}
		if f, ok := data.(fleetData); ok {
			f.Overview.Status, f.Status.Status, f.Envoys.Status = 0, 0, 0
			data = f
		}
		hold(t, &visit{Console: c, org: hostile, scope: adminapi.Principal{Name: hostile, Roles: []adminapi.Role{adminapi.Admin}, Anonymous: true, Orgs: orgs}}, name, data)
	}
}

// adminRows returns rows that can be read. Approval requests can be asked, too: each page counts them.
func adminRows() []adminapi.Endpoint {
	rows := admin.Deps{Features: slices.Concat(
		operator.OverviewSources{}.Endpoints(), (*operator.Fleet)(nil).Endpoints(), operator.Limits{}.Endpoints(), (*money.Money)(nil).Endpoints(), (*alerts.Alerts)(nil).Endpoints(), alerts.Reports{}.Endpoints(), approval.Service{}.Endpoints(), callers.Operators{}.Endpoints(), (*legacy.Calls)(nil).Endpoints(), (*envoy.Server)(nil).Endpoints(), (*decisions.Decisions)(nil).Endpoints(), (*operator.Explainer)(nil).Endpoints(),
		operator.Drafts{}.Endpoints(), (*audit.Log)(nil).Endpoints(), (*operator.Revisions)(nil).Endpoints(),
	)}.Endpoints()
	i := slices.IndexFunc(rows, func(r adminapi.Endpoint) bool { return r.Pattern == approvalList })
	rows[i].Handler = adminapi.HandlerFor(func(context.Context, adminapi.Principal, adminapi.OrgParam) (approval.List, error) {
		return approval.List{}, nil
	})
	return rows
}

// hold renders a page, and fails if hostile text becomes markup, or does not come to it.
func hold(t *testing.T, v *visit, name string, data any) {
	t.Helper()
	w := httptest.NewRecorder()
	v.w, v.r = w, httptest.NewRequest(http.MethodGet, v.path+name+"?from=%3Cscript%3E%22&key="+strings.ReplaceAll(`%22><script>`, "<", "%3C"), http.NoBody)
	v.render(http.StatusOK, name, frame{Title: hostile, Page: hostile, Fault: "", Data: data})
	page := w.Body.String()
	v.w = httptest.NewRecorder()
	v.render(http.StatusOK, name, frame{Title: hostile, Page: hostile, Fault: hostile, Data: data})
	page += v.w.(*httptest.ResponseRecorder).Body.String()
	if w.Code != http.StatusOK {
		t.Errorf("%s cannot be rendered", name)
	}
	if found := runs(t, page, v.path); len(found) > 0 {
		t.Errorf("%s has %q", name, found)
	}
	if n := strings.Count(page, "&lt;script&gt;"); n < 5 {
		t.Errorf("%s shows %d hostile texts: the test does not reach them", name, n)
	}
}

// A page has some rows of a long list, so that its size is bounded.
func TestLongListsAreCut(t *testing.T) {
	t.Parallel()
	list := make([]int, 250)
	for i := range list {
		list[i] = i
	}
	for _, c := range []struct {
		page                 string
		first, last          int
		before, after, holds string
	}{{"", 1, 100, "", "2", ""}, {"2", 101, 200, "1", "3", ""}, {"3", 201, 250, "2", "", ""}, {"9", 201, 250, "2", "", ""}, {"-1", 1, 100, "", "2", ""}, {"x", 1, 100, "", "2", ""}} {
		v := &visit{r: httptest.NewRequest(http.MethodGet, "/ui/keys?page="+c.page, http.NoBody)}
		e := cut(v, list)
		if e.First != c.first || e.Last != c.last || e.All != 250 || e.Before != c.before || e.After != c.after || e.Rows[0] != c.first-1 {
			t.Errorf("page %q: %d to %d of %d, before %q, after %q", c.page, e.First, e.Last, e.All, e.Before, e.After)
		}
	}
	if e := cut(&visit{r: httptest.NewRequest(http.MethodGet, "/ui/keys", http.NoBody)}, []int(nil)); len(e.Rows) != 0 || e.After != "" {
		t.Errorf("an empty list: %+v", e)
	}
}

func TestCharts(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	costs := &money.Costs{}
	for i := range 10 {
		costs.Rows = append(costs.Rows, money.Cost{Start: day.AddDate(0, 0, i%2), End: day.AddDate(0, 0, i%2+1), Team: string(rune('a' + i)), USD: "1"})
	}
	costs.Rows[0].USD = "5.5"
	earlier := &money.Costs{From: day.AddDate(0, 0, -2), To: day, Rows: []money.Cost{
		{Start: day.AddDate(0, 0, -1), End: day, Team: "a", USD: "19"}, {Start: day.AddDate(0, 0, -1), End: day, Team: "gone", USD: "1"},
	}}
	sums := groups(costs, earlier, "team")
	if got := sums[0]; got.Name != "a" || got.Before != 19 || got.Change() != "-71 %" || sums[len(sums)-1].Name != "gone" || sums[1].Change() != "" {
		t.Errorf("groups %+v", sums)
	}
	c := newChart(costs, "team", sums)
	if len(c.Series) != maxSeries || c.Series[0] != "a" || c.Series[maxSeries-1] != "all others" {
		t.Errorf("series %q", c.Series)
	}
	if len(c.Columns) != 2 || c.Columns[0].Label != "2026-11-01" || c.Columns[0].Total != 9.5 || c.Top != 9.5 {
		t.Errorf("columns %+v", c)
	}
	if b := c.Columns[0].Boxes[0]; b.Height != "115.8" || b.Y != "84.2" || b.Title != "2026-11-01, a: 5.50 USD" {
		t.Errorf("the first box: %+v", b)
	}
	c.compare(earlier)
	if c.Top != 20 || c.Columns[1].Before != 20 || c.Before != "200.0,200.0 600.0,0.0" || c.Columns[0].Boxes[0].Height != "55.0" {
		t.Errorf("with the time before: %+v", c)
	}
	c.forecast("2026-11-02", 15)
	if f := c.Forecast; f == nil || f.Y != "50.0" || f.Height != "100.0" || f.Title != "2026-11-02, more by the forecast: 10.00 USD" {
		t.Errorf("with the forecast: %+v", f)
	}
	c.compare(&money.Costs{Rows: costs.Rows[:1]})
	if c.Columns[1].Before != 20 {
		t.Error("a time of another length is compared")
	}
	for _, g := range []struct {
		budget money.Budget
		want   gauge
	}{
		{money.Budget{Limit: "10", Used: "5", Reserved: "1"}, gauge{"50.0", "10.0", "50.0", 60, "fine", "5 used and 1 reserved of 10"}},
		{money.Budget{Limit: "10", Used: "8", Reserved: "0"}, gauge{"80.0", "0.0", "80.0", 80, "near", "8 used and 0 reserved of 10"}},
		{money.Budget{Limit: "10", Used: "20", Reserved: "5"}, gauge{"100.0", "0.0", "100.0", 250, "full", "20 used and 5 reserved of 10"}},
	} {
		if got := newGauge(g.budget); got != g.want {
			t.Errorf("%+v: %+v, want %+v", g.budget, got, g.want)
		}
	}
}
