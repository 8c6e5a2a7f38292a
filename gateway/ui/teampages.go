package ui

import (
	"cmp"
	"net/url"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/selfservice"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/ui/chart"
)

// teamPages returns the pages of callers in the order of the navigation.
func teamPages() []*page {
	return []*page{
		{name: "my", title: "My team", at: first, icon: "home", load: my},
		{name: "myspend", title: "Cost", at: "cost", icon: "chart", period: last30Days, load: mySpend},
		{name: "myresources", title: "Resources", at: "resources", icon: "server", load: myResources},
		{name: "myrequests", title: "Requests", at: "requests", icon: "list", period: last24Hours, load: myDecisions},
		{name: "myrequest", title: "Request", at: "requests/{id}", under: "myrequests", load: myDecision},
		{name: "myapprovals", title: "Approvals", at: "approvals", icon: "inbox", load: myApprovals},
		{name: "mykeys", title: "Keys", at: "keys", icon: "key", lead: true, load: myKeys},
	}
}

// myData is the data of the first page: the caller's identity, and its budgets by scope.
type myData struct {
	selfservice.Me

	Scopes []scopeBudgets
}

// scopeBudgets are the budgets of a key, a team or an organisation.
type scopeBudgets struct {
	Scope   string
	Budgets []ownBudget
}

// ownBudget is a budget as bars of budgets show it, and when its period ends.
type ownBudget struct {
	money.Budget

	Known bool
	Ends  *time.Time
}

func my(v *visit) (any, int, string) {
	me := own[selfservice.Me](v, "me", nil)
	d := myData{Me: me.Is}
	scopes := make(map[string][]ownBudget)
	for _, b := range me.Is.Budgets {
		shown := money.Budget{Name: b.Name, Limit: b.Limit, Used: b.Used, Reserved: b.Reserved, Left: b.Left}
		scopes[b.Scope] = append(scopes[b.Scope], ownBudget{shown, b.Left != "", b.Ends})
	}
	for scope, list := range scopes {
		d.Scopes = append(d.Scopes, scopeBudgets{scope, list})
	}
	slices.SortFunc(d.Scopes, func(a, b scopeBudgets) int { return cmp.Compare(a.Scope, b.Scope) })
	return d, me.Status, me.Fault
}

// given returns the parameters of the page that have some names and a value.
func (v *visit) given(names ...string) url.Values {
	out := url.Values{}
	for _, name := range names {
		if value := v.r.URL.Query().Get(name); value != "" {
			out.Set(name, value)
		}
	}
	return out
}

// mySpendData is the data of the page of a caller's costs.
type mySpendData struct {
	Costs  part[money.Costs]
	Chart  chart.Chart
	Groups []tab
	Table  table
}

func mySpend(v *visit) (any, int, string) {
	q := v.given("by")
	by := cmp.Or(q.Get("by"), "gpu")
	d := mySpendData{Costs: own[money.Costs](v, "spend", with(v.period.Values(), "by", by, "bucket", v.period.Bucket()))}
	for _, g := range costGroups[1:] {
		d.Groups = append(d.Groups, tab{Title: g.title, Path: v.With("by", g.by, "page", ""), Here: g.by == by})
	}
	if d.Costs.OK() {
		d.Chart = costChart(v, "cost", &d.Costs.Is, by)
		d.Table = ownCosts(v, &d.Costs.Is, by)
	}
	return d, d.Costs.Status, d.Costs.Fault
}

// ownCosts lists groups of costs, the highest cost first.
func ownCosts(v *visit, costs *money.Costs, by string) table {
	var rows []chart.Series
	for _, s := range costSeries(costs, by, bucketsOf(costs, bucketOf(costs, v.period.Bucket()))) {
		rows = append(rows, *s)
	}
	rows = chart.Fold(rows, len(rows), nil)
	total := decimal(costs.Total)
	return newTable(v, rows, tableSpec[chart.Series]{Name: "costs", Caption: "Cost by " + groupTitle(by), Whole: true, Columns: []column[chart.Series]{
		{Key: "group", Title: title(groupTitle(by)), Cell: func(s *chart.Series) cell { return textCell(s.Name) }},
		{Key: "cost", Title: "Cost", Number: true, Cell: func(s *chart.Series) cell { return textCell(usdOf(s.Sum())) }},
		{Key: "share", Title: "Share", Cell: func(s *chart.Series) cell { return cell{Share: shareOf(s.Sum() / max(total, 1e-9))} }},
		{Key: "trend", Title: "Trend", Cell: func(s *chart.Series) cell { return cell{Spark: newSpark(s.Values, "Cost of "+s.Name)} }},
	}, Empty: empty{Icon: "chart", Title: "No cost in this period", Text: "The cost of your resources appears here."}})
}

// myResourceData is the data of the page of a caller's resources.
type myResourceData struct {
	Complete  bool                   `json:"complete"`
	Resources []selfservice.Resource `json:"resources"`
	Shown     excerpt[selfservice.Resource]
}

func myResources(v *visit) (any, int, string) {
	list := own[myResourceData](v, "resources", nil)
	list.Is.Shown = cut(v, list.Is.Resources)
	return list.Is, list.Status, list.Fault
}

func myDecisions(v *visit) (any, int, string) {
	list := own[decisions.List](v, "decisions", v.since(v.given("refused", "operation", "limit")))
	return decisionData{list.Is}, list.Status, list.Fault
}

func myDecision(v *visit) (any, int, string) {
	x := own[selfservice.Decision](v, "decisions/"+url.PathEscape(v.r.PathValue("id")), nil)
	if !x.OK() {
		return nil, x.Status, x.Fault
	}
	return x.Is, 0, ""
}

func myApprovals(v *visit) (any, int, string) {
	list := own[struct {
		Approvals []selfservice.Request `json:"approvals"`
	}](v, "approvals", nil)
	return cut(v, list.Is.Approvals), list.Status, list.Fault
}

// teamKey is a key of a lead's team as the route answers it.
type teamKey struct {
	settings.KeyRecord

	MayRotate bool `json:"may_rotate"`
	MayRevoke bool `json:"may_revoke"`
}

func myKeys(v *visit) (any, int, string) {
	list := own[struct {
		Keys []teamKey `json:"keys"`
	}](v, "keys", nil)
	return cut(v, list.Is.Keys), list.Status, list.Fault
}

// Lead reports whether the asker has the pages of leads.
func (f *frame) Lead() bool { return f.session.Lead }
