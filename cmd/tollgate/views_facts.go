package main

import (
	"fmt"
	"slices"

	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// outcomesPage has a row for each bucket.
func outcomesPage(o *decisions.OutcomeCounts, a asked) page {
	s := sheet{{"start", "team", "allowed", "denied", "throttled", "failed"}}
	for _, c := range o.Counts {
		s.add(c.Start, c.Team, c.Allowed, c.Denied, c.Throttled, c.Failed)
	}
	if a.Get("by") == "" { // without teams
		for i := range s {
			s[i] = slices.Delete(s[i], 1, 2)
		}
	}
	t := o.Total
	return page{
		text: []string{fmt.Sprintf("%d requests: %d allowed, %d denied, %d throttled, %d failed.",
			t.Sum(), t.Allowed, t.Denied, t.Throttled, t.Failed), ""},
		sheets: []sheet{s},
	}
}

// comparedPage has a column for each group, and both periods.
func comparedPage(c *money.Comparison, a asked) page {
	p := page{text: []string{fmt.Sprintf("%s USD, %s USD in the previous period.", dollars(c.Total), dollars(c.Previous)), ""}}
	if c.Unknown != "" {
		p.text = []string{fmt.Sprintf("%s USD. No previous period: %s.", dollars(c.Total), c.Unknown), ""}
	}
	groups, header := grouping(a)
	s := sheet{append(header, "usd", "previous", "difference", "percent")}
	for i := range c.Rows {
		r := &c.Rows[i]
		s = append(s, append(costCells(&r.CostGroup, groups), usd(r.USD), usd(r.Previous), usd(r.Difference), r.Percent))
	}
	p.sheets = []sheet{s}
	return p.more(c.Next)
}

// more adds a sentence with the flag that selects the next page. It adds nothing if next is "".
func (p page) more(next string) page {
	if next != "" {
		p.text = append([]string{sentence("next", next)}, p.text...)
	}
	return p
}

func budgetsPage(l *money.BudgetList, _ asked) page {
	s := sheet{{"scope", "team", "budget", "limit", "used", "reserved", "left", "taken", "forecast", "used up"}}
	for i := range l.Budgets {
		b := &l.Budgets[i]
		of := func(amount string) any { return budgetCell(b.Name, amount) }
		var forecast any = ""
		if b.Forecast != nil {
			forecast = of(b.Forecast.Expected)
		}
		s.add(b.Scope, b.Team, b.Name, of(b.Limit), of(b.Used), of(b.Reserved), of(b.Left),
			takenShare(b.Limit, b.Used, b.Reserved), forecast, b.UsedUp)
	}
	return page{sheets: []sheet{s}}.more(l.Next)
}

func fitsPage(f *operator.Fits, _ asked) page {
	p := page{text: []string{"No budget limits the cost of a period.", ""}}
	if f.Left != "" {
		p.text[0] = dollars(f.Left) + " USD left: " + f.Budget
		if f.Resets != nil {
			p.text[0] += ", and " + dollars(f.Free) + " USD when it resets at " + f.Resets.Format("2006-01-02 15:04 MST") + " if running resources continue"
		}
		p.text[0] += "."
	}
	if f.PerHour != "" {
		p.text[0] += " New resources can cost at most " + dollars(f.PerHour) + " USD per hour: " + f.HourlyBudget + "."
	}
	of := func(n *int64) any {
		if n == nil {
			return ""
		}
		return *n
	}
	s := sheet{{"gpu", "cloud", "usd/h", "hours", "at once", "until reset"}}
	for _, g := range f.GPUs {
		s.add(g.GPU, g.Cloud, usd(g.PerHour), g.Hours, of(g.AtOnce), of(g.UntilReset))
	}
	p.sheets = []sheet{s}
	return p
}

func searchPage(r *operator.SearchResults, _ asked) (p page) {
	for _, what := range r.Unknown {
		p.text = append(p.text, "Not searched: "+what+".")
	}
	s := sheet{{"kind", "id", "name", "org", "team", "detail"}}
	for _, f := range r.Results {
		s.add(f.Kind, f.ID, f.Name, f.Org, f.Team, f.Detail)
	}
	if len(r.Results) == 0 {
		p.text = append(p.text, "No matches.")
	} else if r.All > len(r.Results) {
		p.text = append(p.text, fmt.Sprintf("%d of %d matches:", len(r.Results), r.All))
	}
	p.add(s)
	return p
}
