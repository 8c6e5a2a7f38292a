package ui

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

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
)

// page is one page of a console.
type page struct {
	// name is that of its template.
	name, title string
	// at is its path below that of the console, the name where it is empty.
	at string
	// asks is the pattern of the row that the page is about. Who may ask it may see the page. It is empty for pages of callers.
	asks string
	// nav says that the navigation has the page; under is the name of the page that the navigation shows in its place.
	nav   bool
	under string
	// lead says that the navigation of leads alone has the page.
	lead bool
	// load asks the rows. A status other than 0 is that of the page.
	load func(v *visit) (data any, status int, fault string)
}

// first is the path of the first page below that of the console, in the form of [http.ServeMux].
const first = "{$}"

// below returns the route of the page, below the path of the console.
func (p *page) below() string { return cmp.Or(p.at, p.name) }

// pages returns the pages in the order of the navigation.
func pages() []*page {
	return []*page{
		{name: "now", title: "Now", at: first, asks: overviewRow, nav: true, load: now},
		{name: "spend", title: "Spend", asks: history, nav: true, load: spend},
		{name: "resources", title: "Resources", asks: ledger, nav: true, load: resources},
		{name: "decisions", title: "Decisions", asks: decisionList, nav: true, load: loadDecisions},
		{name: "decision", title: "Decision", at: "decisions/{id}", under: "decisions", asks: "GET /admin/decisions/{id}", load: decision},
		{name: "explain", title: "Dry run", asks: explainRow, nav: true, load: blank},
		{name: "alerts", title: "Alerts", asks: alertRow, nav: true, load: loadAlerts},
		{name: "approvals", title: "Approvals", asks: approvalList, nav: true, load: approvals},
		{name: "keys", title: "Keys", asks: keyRow, nav: true, load: keys},
		{name: "limits", title: "Limits", asks: "GET /admin/limits", nav: true, load: quotas},
		{name: "policies", title: "Policies", asks: "GET /admin/orgs", nav: true, load: policies},
		{name: "playground", title: "Playground", asks: tryRow, nav: true, load: blankPlayground},
		{name: "legacy", title: "Legacy", asks: "GET /admin/legacy", nav: true, load: legacyCalls},
		{name: "audit", title: "Audit", asks: auditLog, nav: true, load: changes},
		{name: "configuration", title: "Configuration", asks: configRow, nav: true, load: configuration},
		{name: "fleet", title: "Fleet", asks: "GET /admin/status", nav: true, load: loadFleet},
	}
}

// Patterns of rows that several pages ask.
const (
	overviewRow  = "GET /admin/overview"
	ledger       = "GET /admin/spend"
	history      = "GET /admin/spend/history"
	idle         = "GET /admin/spend/idle"
	decisionList = "GET /admin/decisions"
	auditLog     = "GET /admin/audit/log"
	approvalList = "GET /admin/approvals"
	// auditResources reads from the platform, and bounds its time itself.
	auditResources = "GET /admin/audit"
	configRow      = "GET /admin/config"
	keyRow         = "GET /admin/keys"
	alertRow       = "GET /admin/alerts"
	exceptionRow   = "GET /admin/exceptions"
	explainRow     = "POST /admin/explain"
	tryRow         = "POST /admin/policies/try"
	replayRow      = "POST /admin/policies/replay"
)

// show serves a page.
func (c *Console) show(v *visit, p *page) {
	ctx, cancel := context.WithTimeout(v.r.Context(), operator.PartsTime)
	defer cancel()
	v.patient, v.r = v.r, v.r.WithContext(ctx)
	data, status, fault := p.load(v)
	f := frame{Title: p.title, Page: cmp.Or(p.under, p.name), Fault: fault, Data: data}
	if status == http.StatusUnauthorized { // the key of the session is none any more
		v.toLogin()
		return
	}
	if status != 0 && data == nil {
		f.Title = http.StatusText(status)
		v.render(status, "fault", f)
		return
	}
	status = cmp.Or(status, http.StatusOK)
	v.render(status, p.name, f)
}

// nowData is the data of the page Now.
type nowData struct {
	Overview part[operator.Overview]
	Ledger   part[money.Ledger]
	// Dearest are the greatest costs of seven days.
	Dearest   part[money.Costs]
	Forecasts part[money.Forecasts]
	// Refused are refusals of the last hour, Alerts those of the last week, and Exceptions those that end in the next one.
	Refused    part[decisions.List]
	Alerts     part[alerts.AlertList]
	Exceptions part[alerts.ExceptionList]
}

// Knows reports whether a part of the overview was read.
func (d nowData) Knows(part string) bool { return d.Overview.OK() && d.Overview.Is.Knows(part) }

// alertData is the data of the page of alerts.
type alertData struct {
	alerts.AlertList

	Exceptions part[alerts.ExceptionList]
}

func loadAlerts(v *visit) (any, int, string) {
	var list part[alerts.AlertList]
	var exceptions part[alerts.ExceptionList]
	together(
		func() { list = ask[alerts.AlertList](v, alertRow, v.query(alertRow)) },
		func() { exceptions = ask[alerts.ExceptionList](v, exceptionRow, url.Values{"limit": {"1000"}}) },
	)
	return alertData{list.Is, exceptions}, list.Status, list.Fault
}

// withoutKeys leaves keys out: an organisation can have thousands. A key whose budget is nearly used up is on the overview.
func withoutKeys[T any](list []T, scope func(*T) string) []T {
	return slices.DeleteFunc(slices.Clone(list), func(x T) bool { return strings.HasPrefix(scope(&x), "key ") })
}

func now(v *visit) (any, int, string) {
	var d nowData
	week := v.now().UTC().AddDate(0, 0, -7).Format(time.DateOnly)
	together(
		func() { d.Overview = ask[operator.Overview](v, overviewRow, nil) },
		func() { d.Ledger = ask[money.Ledger](v, ledger, nil) },
		func() { d.Forecasts = ask[money.Forecasts](v, "GET /admin/spend/forecast", nil) },
		func() {
			d.Refused = ask[decisions.List](v, decisionList, url.Values{"refused": {"true"}, "since": {"1h"}, "limit": {"20"}})
		},
		func() { d.Alerts = ask[alerts.AlertList](v, alertRow, url.Values{"since": {"7d"}, "limit": {"10"}}) },
		func() {
			d.Exceptions = ask[alerts.ExceptionList](v, exceptionRow, url.Values{"within": {"7d"}, "limit": {"10"}})
		},
		func() {
			d.Dearest = ask[money.Costs](v, history, url.Values{"by": {"resource,team"}, "bucket": {"total"}, "limit": {"10"}, "from": {week}})
		},
	)
	d.Ledger.Is.Scopes = withoutKeys(d.Ledger.Is.Scopes, func(b *money.Balance) string { return b.Scope })
	d.Forecasts.Is.Scopes = withoutKeys(d.Forecasts.Is.Scopes, func(f *money.Forecast) string { return f.Scope })
	return d, d.Overview.Status, d.Overview.Fault
}

// resourceData is the data of the page of resources.
type resourceData struct {
	Ledger part[money.Ledger]
	Shown  excerpt[money.Resource]
	Holds  excerpt[money.Hold]
	Idle   part[money.IdleList]
	idle   map[string]money.IdleResource
}

// IdleOf returns the details of an idle resource, with an empty ID for a resource that works.
func (d resourceData) IdleOf(id string) money.IdleResource { return d.idle[id] }

func resources(v *visit) (any, int, string) {
	d := resourceData{idle: map[string]money.IdleResource{}}
	together(
		func() { d.Ledger = ask[money.Ledger](v, ledger, v.query(ledger)) },
		func() { d.Idle = ask[money.IdleList](v, idle, nil) },
	)
	for _, r := range d.Idle.Is.Resources {
		d.idle[r.ID] = r
	}
	d.Shown, d.Holds = cut(v, d.Ledger.Is.Resources), cut(v, d.Ledger.Is.Holds)
	return d, d.Ledger.Status, d.Ledger.Fault
}

// decisionData is the data of the page of decisions.
type decisionData struct{ decisions.List }

// Blank is the decision that a row for later ones is made of.
func (decisionData) Blank() explain.Summary { return explain.Summary{} }

func loadDecisions(v *visit) (any, int, string) {
	q := v.query(decisionList)
	list := ask[decisions.List](v, decisionList, q)
	if n := len(list.Is.Decisions); list.Is.Next == "" && n > 0 && strconv.Itoa(n) == cmp.Or(q.Get("limit"), "50") {
		list.Is.Next = list.Is.Decisions[n-1].Time.UTC().Format(time.RFC3339Nano)
	}
	return decisionData{list.Is}, list.Status, list.Fault
}

func decision(v *visit) (any, int, string) {
	x := ask[explain.Report](v, "GET /admin/decisions/{id}", url.Values{"id": {v.r.PathValue("id")}})
	if !x.OK() {
		return nil, x.Status, x.Fault
	}
	v.org = x.Is.Caller.Org
	return x.Is, 0, ""
}

func approvals(v *visit) (any, int, string) {
	list := ask[approval.List](v, approvalList, nil)
	return cut(v, list.Is.Approvals), list.Status, list.Fault
}

func keys(v *visit) (any, int, string) {
	list := ask[callers.List](v, keyRow, v.query(keyRow))
	return list.Is, list.Status, list.Fault
}

func quotas(v *visit) (any, int, string) {
	list := ask[operator.LimitList](v, "GET /admin/limits", nil)
	return cut(v, list.Is.Windows), list.Status, list.Fault
}

func changes(v *visit) (any, int, string) {
	list := ask[audit.Page](v, auditLog, v.query(auditLog))
	return list.Is, list.Status, list.Fault
}

// configData is the data of the page of the configuration.
type configData struct {
	operator.ActiveConfig

	// File and Before are the differences to the file, and to the revision before or the one that the page names.
	File, Before part[operator.ConfigDiff]
	// Revisions are those that can be named, none for admins of an organisation.
	Revisions []operator.Revision
}

func configuration(v *visit) (any, int, string) {
	const diffs, revisionRow = "GET /admin/config/diff", "GET /admin/config/revisions"
	var c part[operator.ActiveConfig]
	var d configData
	together(
		func() { c = ask[operator.ActiveConfig](v, configRow, nil) },
		func() { d.File = ask[operator.ConfigDiff](v, diffs, url.Values{"with": {operator.AgainstFile}}) },
		func() { d.Before = ask[operator.ConfigDiff](v, diffs, v.query(diffs)) },
		func() {
			if v.may(revisionRow) {
				d.Revisions = ask[operator.RevisionList](v, revisionRow, nil).Is.Revisions
			}
		},
	)
	d.ActiveConfig = c.Is
	return d, c.Status, c.Fault
}

// legacyData is the data of the page of legacy callers.
type legacyData struct {
	excerpt[legacy.Call]

	Brownouts []legacy.Brownout
}

func legacyCalls(v *visit) (any, int, string) {
	list := ask[legacy.List](v, "GET /admin/legacy", nil)
	return legacyData{cut(v, list.Is.Calls), list.Is.Brownouts}, list.Status, list.Fault
}

// fleetData is the data of the page of the fleet.
type fleetData struct {
	Overview part[operator.Overview]
	Status   part[operator.Report]
	Envoys   part[envoy.Status]
}

func loadFleet(v *visit) (any, int, string) {
	var d fleetData
	together(
		func() { d.Overview = ask[operator.Overview](v, overviewRow, nil) },
		func() { d.Status = ask[operator.Report](v, "GET /admin/status", nil) },
		func() { d.Envoys = ask[envoy.Status](v, "GET /admin/envoy", nil) },
	)
	if !d.Status.OK() {
		return nil, d.Status.Status, d.Status.Fault
	}
	return d, 0, ""
}
