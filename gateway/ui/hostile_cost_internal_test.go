package ui

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

func hostileCosts() part[money.Costs] {
	costs := of[money.Costs]()
	for i := range costs.Is.Rows {
		r := &costs.Is.Rows[i]
		r.USD, r.End = []string{"2", "1"}[i%2], r.Start.AddDate(0, 0, 1)
		costs.Is.From, costs.Is.To = r.Start, r.End
	}
	return costs
}

// hostileVisit returns a visit of an admin to a page with hostile parameters.
func hostileVisit(path string) *visit {
	c := New(&admin.Guard{Now: time.Now, Logger: slog.New(slog.DiscardHandler)}, adminRows(), nil, 35)
	v := &visit{Console: c, org: hostile, scope: adminapi.Principal{Name: hostile, Roles: []adminapi.Role{adminapi.Admin}, Orgs: []adminapi.Tenant{{ID: hostile, Teams: []string{hostile}}}}}
	v.r = httptest.NewRequest(http.MethodGet, c.path+path+"?by=team&team="+url.QueryEscape(hostile), http.NoBody)
	_ = v.enter(c.pageNamed("cost")) // the time range is valid
	return v
}

func hostileExplorer() costData {
	v := hostileVisit("cost")
	d := costData{Costs: hostileCosts(), Compared: of[money.Comparison](), by: "team,label:" + hostile}
	d.Compared.Is.Unknown = ""
	d.listing, d.Chart = v.filtered(costFilterFields(v)...), costChart(v, &d.Costs.Is, d.by)
	f := of[money.Forecasts]().Is.Scopes[0]
	d.Tiles, d.Groups, d.Table = d.tiles(v, &f), d.groups(v), d.table(v)
	d.links(v, costQuery(v))
	return d
}

func hostileBudgets() budgetData {
	v := hostileVisit("budgets")
	d := budgetData{listing: v.filtered(field{Name: "team", Label: "Team"}), Budgets: of[money.BudgetList](), Fits: of[operator.Fits]()}
	d.Table = budgetTable(v, &d.Budgets.Is, true)
	used := hostileCosts()
	d.fits(v, &used.Is)
	return d
}

func hostileCost() map[string]any {
	v, list, idle, holds := hostileVisit("resources"), of[money.ResourceList](), of[money.IdleList](), of[money.HoldList]()
	one := oneResource{id: hostile, head: head{Title: hostile}, Costs: hostileCosts(), Requests: of[decisions.List](), Idle: &idle.Is.Resources[0].Idle}
	one.Chart = costChart(v, &one.Costs.Is, "team")
	one.describe(v, &list.Is.Resources[0], &idle.Is)
	one.Calls = requestTable(v, filled[[]explain.Summary]().([]explain.Summary))
	found := of[operator.SearchResults]()
	list.Is.Loss.Rebuilt = nil
	form := v.filters(costFilterFields(v)...)
	resources := listing{Notes: ledgerNotes(&list.Is), Filters: &form, Table: resourceTable(v, &list.Is, idleByID(&idle.Is))}
	return map[string]any{
		"cost": hostileExplorer(), "budgets": hostileBudgets(), "resources": resources, "resource": one,
		"reservations": listing{Table: holdTable(v, holds.Is.Holds)},
		"idle":         listing{Table: idleTable(v, idle.Is.Resources)},
		"search":       newSearchData(v, &found.Is),
	}
}

func hostileMySpend() mySpendData {
	v := hostileVisit("cost")
	v.r.URL.Path = teamPath + "cost"
	d := mySpendData{Costs: hostileCosts(), Groups: []tab{{Title: hostile, Path: v.Here()}}}
	d.Chart, d.Table = costChart(v, &d.Costs.Is, "team"), ownCosts(v, &d.Costs.Is, "team")
	return d
}
