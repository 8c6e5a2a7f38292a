package ui

import (
	"cmp"
	"net/url"
	"slices"

	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/selfservice"
	"github.com/tollgate-dev/tollgate/gateway/ui/chart"
)

// teamPages returns the callers' pages in the order of the navigation.
func teamPages() []*page {
	return []*page{
		{name: "my", title: "My team", at: first, icon: "home", load: my},
		{name: "myspend", title: "Cost", at: "cost", icon: "chart", period: last30Days, costs: true, load: mySpend},
		{name: "myresources", title: "Resources", at: "resources", icon: "server", load: myResources},
		{name: "myrequests", title: "Requests", at: "requests", icon: "list", period: last24Hours, load: myDecisions},
		{name: "myrequest", title: "Request", at: "requests/{id}", under: "myrequests", load: myDecision},
		{name: "myapprovals", title: "Approvals", at: "approvals", icon: "inbox", load: myApprovals},
		{name: "mykeys", title: "Keys", at: "keys", icon: "key", lead: true, load: myKeys},
		{name: "newkey", title: "Create key", at: "create-key", under: "mykeys", lead: true, load: myNewKey},
	}
}

// given returns the non-empty parameters of the page with the given names.
func (v *visit) given(names ...string) url.Values {
	out := url.Values{}
	for _, name := range names {
		if value := v.r.URL.Query().Get(name); value != "" {
			out.Set(name, value)
		}
	}
	return out
}

// mySpendData holds the data of the page about a caller's costs.
type mySpendData struct {
	Costs  part[money.Costs]
	Tiles  []tile
	Chart  chart.Chart
	Groups []tab
	Table  table
}

func mySpend(v *visit) (any, int, string) {
	q := v.given("by")
	by := cmp.Or(q.Get("by"), "gpu")
	var d mySpendData
	var me part[selfservice.Me]
	together(
		func() {
			d.Costs = own[money.Costs](v, "spend", with(v.period.Values(), "by", by, "bucket", v.period.Bucket()))
		},
		func() { me = own[selfservice.Me](v, "me", url.Values{"forecast": {"true"}}) },
	)
	for _, g := range costGroups[1:] {
		d.Groups = append(d.Groups, tab{Title: g.title, Path: v.With("by", g.by, "page", ""), Here: g.by == by})
	}
	if d.Costs.OK() {
		d.Tiles = ownCostTiles(v, &d.Costs.Is, ownBudgetRows(me.Is.Budgets))
		d.Chart = costChart(v, &d.Costs.Is, by)
		d.Table = ownCosts(v, &d.Costs.Is, by)
	}
	return d, d.Costs.Status, d.Costs.Fault
}

// ownCostTiles returns the metrics above the chart: the total, the average since the first cost, and the month's budget.
func ownCostTiles(v *visit, costs *money.Costs, budgets []money.BudgetRow) []tile {
	tiles := []tile{{Label: "Total, " + lower(v.period.Label()), Value: amount(costs.Total)}}
	buckets := bucketsOf(costs, bucketOf(costs, v.period.Bucket()))
	_, sums := costSeries(costs, "", buckets, nil)
	if i := slices.IndexFunc(sums, func(n float64) bool { return n > 0 }); i >= 0 {
		from := buckets[i].Start
		if from.Before(costs.From) { // days are in UTC
			from = costs.From
		}
		if hours := v.period.To.Sub(from).Hours(); hours > 0 {
			tiles = append(tiles, averageTile(decimal(costs.Total), hours, ", since "+from.In(v.zone()).Format("2 Jan")))
		}
	}
	if t := myMonth(v, budgets); t != nil {
		t.Path = ""
		tiles = append(tiles, *t)
	}
	return tiles
}

// ownCosts lists groups of costs, the highest cost first.
func ownCosts(v *visit, costs *money.Costs, by string) table {
	rows := groupSums(costs, by)
	shown, _ := cut(v, rows)
	series, _ := costSeries(costs, by, bucketsOf(costs, bucketOf(costs, v.period.Bucket())), shown)
	total := decimal(costs.Total)
	return newTable(v, rows, tableSpec[groupSum]{Name: "costs", Caption: "Cost by " + groupTitle(by), Whole: true, Columns: []column[groupSum]{
		{Key: "group", Title: title(groupTitle(by)), Value: func(g *groupSum) any { return g.name }},
		{Key: "cost", Title: "Cost", Number: true, Value: func(g *groupSum) any { return usdOf(g.usd) }},
		{Key: "share", Title: "Share", Cell: func(g *groupSum) cell { return cell{Share: shareOf(g.usd / max(total, 1e-9))} }},
		{
			Key: "trend", Title: "Trend by " + v.bucketName(v.period.Bucket()),
			Cell: func(g *groupSum) cell { return cell{Spark: newSpark(v.whole(costs, series[g.id]), "Cost of "+g.name)} },
		},
	}, Empty: empty{Icon: "chart", Title: "No cost in this period", Text: "The cost of your resources appears here."}})
}
