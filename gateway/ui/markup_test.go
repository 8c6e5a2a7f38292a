package ui

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"math"
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
	"github.com/tollgate-dev/tollgate/gateway/legacy"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/gateway/ui/chart"
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
			if strings.HasPrefix(token.String(), `<script src="`+console+`console.js?v=`) {
				continue // the gateway's own
			}
			if slices.Contains([]string{"script", "img", "iframe", "object", "base", "style"}, token.Data) {
				found = append(found, token.String())
			}
			for _, a := range token.Attr {
				if strings.HasPrefix(a.Key, "on") || a.Key == "style" || slices.Contains([]string{"href", "action", "src", "formaction"}, a.Key) && !strings.HasPrefix(a.Val, console) && !strings.HasPrefix(a.Val, "#") {
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
	c := New(guard, adminRows(), nil, 35)
	shown := map[string]any{
		"secret":  filled[callers.KeyResponse](),
		"login":   filled[loginData](),
		"fault":   nil,
		"confirm": &confirmation{Action: "/ui/keys/revoke", Fields: url.Values{hostile: {hostile}}, Text: hostile, Button: hostile},
	}
	for _, of := range []map[string]any{hostileOverview(), hostileCost(), hostileTraffic(), hostilePolicy(), hostileAccess(), hostileSystem()} {
		maps.Copy(shown, of)
	}
	team := map[string]any{
		"secret":  shown["secret"],
		"login":   shown["login"],
		"fault":   nil,
		"confirm": &confirmation{Action: "/tollgate/ui/keys/revoke", Fields: url.Values{hostile: {hostile}}, Text: hostile, Button: hostile},
	}
	maps.Copy(team, hostileTeam())
	ofCallers := NewTeam(Team{Now: time.Now, Encrypted: func(*http.Request) bool { return false }, Logger: slog.New(slog.DiscardHandler)}, nil)
	known := make(map[string]bool)
	for name, data := range team {
		known[name] = true
		v := &visit{Console: ofCallers, scope: adminapi.Principal{Name: hostile}, session: session{Lead: true}}
		hold(t, v, name, data)
	}
	for name := range templates[Path]() {
		data, ofOperators := shown[name]
		if !ofOperators {
			if !known[name] {
				t.Errorf("page %s has no data here", name)
			}
			continue
		}
		hold(t, &visit{Console: c, org: hostile, scope: adminapi.Principal{Name: hostile, Roles: []adminapi.Role{adminapi.Admin}, Anonymous: true, Orgs: orgs}}, name, data)
	}
	hold(t, &visit{Console: c, org: hostile, scope: adminapi.Principal{Name: hostile, Roles: []adminapi.Role{adminapi.Admin}, Anonymous: true, Orgs: orgs}}, "policies", hostileHeld())
}

// adminRows returns rows that can be read. Approval requests can be asked, too: each page counts them.
func adminRows() []adminapi.Endpoint {
	rows := admin.Deps{Features: slices.Concat(
		operator.OverviewSources{}.Endpoints(), operator.Search{}.Endpoints(), operator.Fitting{}.Endpoints(), (*operator.Fleet)(nil).Endpoints(), operator.Limits{}.Endpoints(), (*money.Money)(nil).Endpoints(), (*alerts.Alerts)(nil).Endpoints(), alerts.Reports{}.Endpoints(), approval.Service{}.Endpoints(), callers.Operators{}.Endpoints(), (*legacy.Calls)(nil).Endpoints(), (*envoy.Server)(nil).Endpoints(), (*decisions.Decisions)(nil).Endpoints(), (*operator.Explainer)(nil).Endpoints(),
		operator.Drafts{}.Endpoints(), operator.Policies{}.Endpoints(), (*audit.Log)(nil).Endpoints(), (*operator.Revisions)(nil).Endpoints(),
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
	v.period = period{Name: last7Days, Chosen: true, From: time.Unix(1_800_000_000, 0), To: time.Unix(1_800_600_000, 0)}
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

// Costs become series by group and bucket; the smallest groups become one.
func TestCostsBecomeSeries(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	costs := &money.Costs{From: day, To: day.AddDate(0, 0, 3)}
	for i := range 10 {
		costs.Rows = append(costs.Rows, money.Cost{Start: day.AddDate(0, 0, i%2), End: day.AddDate(0, 0, i%2+1), CostGroup: money.CostGroup{Team: string(rune('a' + i))}, USD: "1"})
	}
	costs.Rows[0].USD, costs.Rows[9].Team = "5.5", ""
	v := &visit{period: period{From: day, To: day.AddDate(0, 0, 3)}, Console: &Console{now: time.Now}}
	c := costChart(v, costs, "team")
	if len(c.Buckets) != 3 || len(c.Series) != chart.MaxSeries || c.Series[0].Name != "a" || c.Series[0].Values[0] != 5.5 || c.Series[7].Name != "3 others" || c.Series[7].Sum() != 3 {
		t.Errorf("series %+v", c.Series)
	}
	if sums := sumsOf(costs, "day", 2); len(sums) != 2 || sums[0] != 5 || sums[1] != 0 {
		t.Errorf("the last two days: %v", sums)
	}
	inBerlin, inUTC := &money.Costs{From: day.Add(-time.Hour), To: day.AddDate(0, 0, 3)}, &money.Costs{From: day, To: day.AddDate(0, 0, 3)}
	if sums := previousSums(inBerlin, costs, "day", 4); len(sums) != 4 || !math.IsNaN(sums[0]) || sums[1] != 9.5 {
		t.Errorf("a previous period of whole days, which begins one bucket later: %v", sums)
	}
	if sums := previousSums(inUTC, costs, "day", 3); len(sums) != 3 || sums[0] != 9.5 {
		t.Errorf("a previous period of whole days: %v", sums)
	}
	costs.Rows[0].End = costs.Rows[0].Start.Add(9 * time.Minute) // a range that ends in the first day
	if c := costChart(v, costs, "team"); len(c.Buckets) != 3 {
		t.Errorf("%d buckets, want 3 days", len(c.Buckets))
	}
	if got := groupName(&costs.Rows[9].CostGroup, "team,label:project"); got != "No team, No label project" {
		t.Errorf("the group of costs without a team: %q", got)
	}
}

// The costs of resources are downloaded with the IDs of the resources, of which several may have the same name.
func TestCostLines(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	rows := []money.Cost{{
		Start: day, End: day.AddDate(0, 0, 1), USD: "1.5",
		CostGroup: money.CostGroup{Kind: "pod", Resource: "pod-1", Name: "train", GPU: "NVIDIA L4", DataCenter: "EU-RO-1", Labels: map[string]string{"resource": "x"}},
	}}
	for by, want := range map[string]string{
		"resource":       "start,end,resource,kind,name,gpu,dc,usd 2026-11-01T00:00:00Z,2026-11-02T00:00:00Z,pod-1,pod,train,NVIDIA L4,EU-RO-1,1.5",
		"label:resource": "start,end,label:resource,usd 2026-11-01T00:00:00Z,2026-11-02T00:00:00Z,x,1.5",
	} {
		lines := costLines(rows, by)
		if got := strings.Join(lines[0], ",") + " " + strings.Join(lines[1], ","); len(lines) != 2 || got != want {
			t.Errorf("by %s: %s, want %s", by, got, want)
		}
	}
}
