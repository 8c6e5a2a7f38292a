package ui

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/selfservice"
	"github.com/tollgate-dev/tollgate/gateway/settings"
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

func mySpend(v *visit) (any, int, string) {
	q := v.given("bucket", "by")
	maps.Copy(q, v.period.Values())
	q.Set("by", cmp.Or(q.Get("by"), "gpu"))
	d := spendData{Costs: own[money.Costs](v, "spend", q), By: q.Get("by"), Bucket: cmp.Or(q.Get("bucket"), "day")}
	if d.Costs.OK() {
		d.Groups = groups(&d.Costs.Is, new(money.Costs), d.By)
		d.Shown = cut(v, d.Groups)
		d.Chart = newChart(&d.Costs.Is, d.By, d.Groups)
	}
	return d, d.Costs.Status, d.Costs.Fault
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
