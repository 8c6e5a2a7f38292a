package parity

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/test/platform"
)

// post asks the admin listener and returns its answer.
func (d *door) post(t *testing.T, target string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, target, http.NoBody)
	r.Host = "127.0.0.1"
	d.gateway.AdminHandler().ServeHTTP(w, r)
	return w
}

// accrued is what a scope has accrued today and this month.
func (d *door) accrued(t *testing.T, scope string) string {
	t.Helper()
	for _, s := range d.ledger(t).Scopes {
		if s.Scope == scope {
			return s.Day + " " + s.Month
		}
	}
	return ""
}

// A wrong price in the configuration uses a budget up. An operator takes back what it has accrued: the budget has room again,
// the history and the export have the correction, and a repeated request changes nothing.
func TestAWrongPriceIsTakenBack(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", budgeted("{per_day: 40}"), prices(`{gpus: {"NVIDIA L4": 39.5}}`))
	d.reconcile(t)
	asOperator[money.Costs](t, d, "GET", "/admin/spend/history?org=acme") // it begins
	id := d.rented(t, podL4)
	d.advance(time.Hour)
	text := strings.Replace(d.text, "39.5", "0.43", 1)
	if err := d.gateway.Swap(load(t, text, d.upstream)); err != nil {
		t.Fatal(err)
	}
	d.reconcile(t)
	if a := d.ask(t, request("POST", "/v2/pods", "key_research", podL4)); a.Status != 402 {
		t.Fatalf("after the wrong price: %d %s, want 402", a.Status, a.Body)
	}
	if got := d.accrued(t, "team research"); got != "39.50274 39.50274" {
		t.Fatalf("accrued %s, want an hour of 39.50274", got)
	}
	for query, want := range map[string]string{
		"kind=credit&amount=1": "reason: is required", "kind=gift&reason=x": "expected credit, correction or reset", "kind=credit&reason=x": "amount: must be an amount", "kind=credit&amount=-1&reason=x": "must be positive if kind is 'credit'",
		"kind=reset&amount=1&reason=x": "must be absent if kind is 'reset'", "kind=correction&amount=0&reason=x": "amount", "kind=credit&amount=39.6&team=research&reason=x": "team research has accrued 39.50274 USD today",
		"kind=credit&amount=1&key=none&reason=x": `key \"none\" is not configured`, "kind=reset&key=key_research&team=platform&reason=x": `belongs to team \"research\"`,
		"kind=reset&reason=x&request_id=" + url.QueryEscape("a b"): "request_id", "kind=reset&reason=%20": "reason: is required",
	} {
		if w := d.post(t, "/admin/spend/adjust?org=acme&"+query); w.Code != 400 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s, want 400 and %q", query, w.Code, w.Body, want)
		}
	}
	const credit = "/admin/spend/adjust?org=acme&kind=credit&key=key_research&amount=39.07&reason=a+wrong+price&request_id=r-1"
	for _, repeated := range []bool{false, true} {
		got := asOperator[money.AdjustedAccrual](t, d, "POST", credit)
		want := money.AdjustedAccrual{RequestID: "r-1", Scope: "key key_research", DayChange: "-39.07", MonthChange: "-39.07", Day: "0.43274", Month: "0.43274", Repeated: repeated}
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if w := d.post(t, strings.Replace(credit, "39.07", "0.1", 1)); w.Code != 409 {
		t.Errorf("another adjustment of the same request: %d %s, want 409", w.Code, w.Body)
	}
	for _, scope := range []string{"key key_research", "team research", "organisation"} {
		if got := d.accrued(t, scope); got != "0.43274 0.43274" {
			t.Errorf("%s has accrued %s, want 0.43274", scope, got)
		}
	}
	if a := d.ask(t, request("POST", "/v2/pods", "key_research", podL4)); a.Status != 201 {
		t.Errorf("after the credit: %d %s, want 201", a.Status, a.Body)
	}
	costs := asOperator[money.Costs](t, d, "GET", "/admin/spend/history?org=acme&by=kind&by=resource&by=team")
	got := make(map[string]string)
	for _, c := range costs.Rows {
		got[c.Kind+" "+c.Resource] = strings.TrimSpace(c.USD + " " + c.Team + " " + strings.TrimPrefix(c.Name, "a"))
	}
	if got["pod "+id] != "39.50274 research" || got["adjustment r-1"] != "-39.07 research credit: a wrong price" || costs.Total != "0.43274" {
		t.Errorf("the history is %v, in all %s", got, costs.Total)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/admin/spend/export?org=acme", http.NoBody)
	r.Host = "127.0.0.1"
	d.gateway.AdminHandler().ServeHTTP(w, r)
	if export := w.Body.String(); !strings.Contains(export, "-39.07") || !strings.Contains(export, "Credit,Correction,adjustment credit: a wrong price,One-Time") {
		t.Errorf("the export has no correction:\n%s", export)
	}
	if logs := d.logs.String(); !strings.Contains(logs, `"msg":"admin change"`) || !strings.Contains(logs, "reason=a+wrong+price") {
		t.Error("the log does not have who adjusted, and why")
	}
	reset := asOperator[money.AdjustedAccrual](t, d, "POST", "/admin/spend/adjust?org=acme&kind=reset&period=month&reason=x")
	if reset.Month != "0" || reset.Day != "0" || reset.Scope != "organisation" || d.accrued(t, "team research") != "0.43274 0.43274" {
		t.Errorf("%+v and team %s, want the organisation's account alone reset", reset, d.accrued(t, "team research"))
	}
}

// A weekly report may be asked for until tomorrow. A report for a later week would have a cost of 0.
func TestReportsOfTheFutureAreRefused(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", budgeted("{per_day: 40}"))
	d.reconcile(t)
	asOperator[money.Costs](t, d, "GET", "/admin/spend/history?org=acme") // it begins
	for days, want := range map[int]int{0: http.StatusOK, 30: http.StatusBadRequest} {
		to := d.clock.Now().AddDate(0, 0, days).Format(time.DateOnly)
		if got := d.asOperator(t, http.MethodGet, "/admin/report?org=acme&to="+to, "", nil); got != want {
			t.Errorf("a report %d days from now: %d, want %d", days, got, want)
		}
	}
}

// A pass that fails because of the platform says so, and not that Redis is unavailable.
func TestReconcilingWithoutThePlatform(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", budgeted("{per_day: 40}"))
	d.platform.AddFault(platform.Fault{Operation: "listPods", Kind: platform.FaultStatus, Status: 503, Times: 100})
	if w := d.post(t, "/admin/spend/reconcile?org=acme"); w.Code != 502 || !strings.Contains(w.Body.String(), "cannot reconcile with the platform") {
		t.Errorf("reconcile: %d %s", w.Code, w.Body)
	}
}
