package ui

import (
	"cmp"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/gateway/ui/chart"
)

// overviewFacts holds the API responses for the overview.
type overviewFacts struct {
	overview  part[operator.Overview]
	forecasts part[money.Forecasts]
	// costs covers the page's time range by team, and hours covers the last day.
	costs, hours part[money.Costs]
	// outcomes covers two days by hour.
	outcomes part[decisions.OutcomeCounts]
	budgets  part[money.BudgetList]
	idle     part[money.IdleList]
	denied   part[decisions.List]
}

// overviewData holds the data of the overview.
type overviewData struct {
	Notes     []note
	Tiles     []tile
	Cost      chart.Chart
	CostFault string
	// First replaces the chart if the organisation has no costs yet, and is nil otherwise.
	First     *empty
	Attention attention
	Budgets   table
	Denied    table
	// BudgetFault and DeniedFault explain why these tables are missing.
	BudgetFault, DeniedFault string
}

// overviewRows is the maximum number of rows of a table on the overview.
const overviewRows = 3

// overviewPlot is the height of the chart's plot in pixels. At this height, the page fits into a window of 1280 by 800.
const overviewPlot = 120

func loadOverview(v *visit) (any, int, string) {
	var f overviewFacts
	span := v.period.Values()
	span.Set("by", "team")
	span.Set("bucket", v.period.Bucket())
	day := newPeriod(url.Values{"range": {last24Hours}}, last24Hours, v.now(), time.UTC).Values()
	day.Set("bucket", "hour")
	together(
		func() { f.overview = ask[operator.Overview](v, overviewRow, nil) },
		func() { f.forecasts = ask[money.Forecasts](v, forecastRow, nil) },
		func() { f.costs = ask[money.Costs](v, history, span) },
		func() { f.hours = ask[money.Costs](v, history, day) },
		func() { f.readDenied(v) },
		func() { f.budgets = ask[money.BudgetList](v, budgetRow, url.Values{"limit": {"200"}}) },
		func() { f.idle = ask[money.IdleList](v, idle, nil) },
	)
	v.badges = problemsOf(&f.overview.Is, v.now())
	v.badges.approvals = len(f.overview.Is.Approvals)
	return newOverview(v, &f), f.overview.Status, f.overview.Fault
}

// readDenied reads the outcomes of two days and, if any requests were denied, the latest denials. It avoids searching a long archive that
// contains no denials, because this takes many reads.
func (f *overviewFacts) readDenied(v *visit) {
	f.outcomes = ask[decisions.OutcomeCounts](v, outcomeRow, url.Values{"since": {"48h"}, "bucket": {"hour"}})
	if sum := &f.outcomes.Is.Total; !f.outcomes.OK() || sum.Denied+sum.Throttled > 0 {
		f.denied = ask[decisions.List](v, decisionList, url.Values{"refused": {"true"}, "since": {"24h"}, "limit": {strconv.Itoa(overviewRows)}})
	}
}

// newOverview builds the overview from API responses.
func newOverview(v *visit, f *overviewFacts) overviewData {
	scope := scopeOf(f.forecasts.Is.Scopes, "organisation")
	d := overviewData{
		Tiles:     []tile{burnTile(v, f, scope), todayTile(v, f, scope), monthTile(v, f, scope), deniedTile(v, f)},
		CostFault: f.costs.Fault, BudgetFault: f.budgets.Fault, DeniedFault: f.denied.Fault,
	}
	for _, unknown := range f.overview.Is.Unknown {
		d.Notes = append(d.Notes, note{levelBad, "Unknown: " + unknown})
	}
	if f.costs.OK() {
		d.Cost = overviewChart(v, &f.costs.Is, scope)
		if decimal(f.costs.Is.Total) == 0 {
			d.First = &empty{
				Icon: "chart", Title: "No cost in this period",
				Text: "The cost of each team appears here as soon as a resource is created through the gateway. Create one:", Code: firstCall(),
			}
		}
	}
	d.Attention = newAttention(v, f)
	d.Budgets = overviewBudgets(v, f.budgets.Is.Budgets)
	d.Denied = deniedTable(v, f.denied.Is.Decisions)
	if f.denied.Is.Incomplete != "" && len(f.denied.Is.Decisions) == 0 {
		d.DeniedFault = f.denied.Is.Incomplete
	}
	return d
}

// firstCall returns an example call that creates a resource.
func firstCall() *code {
	return &code{"call that creates a pod", `curl -X POST "$TOLLGATE_URL/v2/pods" -H "Authorization: Bearer $TOLLGATE_KEY" \
  -H "Content-Type: application/json" -d '{"name": "first", "image": "ubuntu:24.04", "gpu": {"id": "NVIDIA L4", "count": 1}}'`}
}

// scopeOf returns the forecast of a scope, or an empty forecast if it is not in the list.
func scopeOf(list []money.Forecast, scope string) *money.Forecast {
	i := slices.IndexFunc(list, func(f money.Forecast) bool { return f.Scope == scope })
	if i < 0 {
		return &money.Forecast{}
	}
	return &list[i]
}

// burnTile shows the current hourly cost and its trend in the last 24 hours.
func burnTile(v *visit, f *overviewFacts, scope *money.Forecast) tile {
	rate := decimal(scope.PerHour)
	t := tile{
		Label: "Burn rate now", Value: usdOf(rate), Unit: "per hour", Note: usdOf(rate*hoursPerMonth) + " per month at this rate",
		Path: v.path + "cost?" + url.Values{"org": {v.org}, "range": {last24Hours}}.Encode(), Fault: f.forecasts.Fault,
	}
	if hours := v.whole(&f.hours.Is, sumsOf(&f.hours.Is, "hour", 25)); len(hours) > 1 {
		hours = append(hours, rate) // of the current hour, which has not ended
		t.Spark = newSpark(hours, "Cost by hour in the last 24 hours, up to "+usdOf(slices.Max(hours))+", ending with the burn rate now")
	}
	return t
}

// todayTile shows the cost so far today and the expected cost.
func todayTile(v *visit, f *overviewFacts, scope *money.Forecast) tile {
	t := tile{Label: "Today", Value: usdOf(decimal(scope.Today)), Path: v.Link("cost"), Fault: f.forecasts.Fault}
	expected := decimal(scope.Day.Expected)
	t.Note = usdOf(expected) + " expected by midnight"
	unit := v.bucketName(v.period.Bucket())
	days := sumsOf(&f.costs.Is, "day", 14)
	if v.period.Bucket() != "day" || !f.costs.Is.To.After(v.now()) || len(days) < 2 {
		return t
	}
	days = days[:len(days)-1] // today has not ended
	t.Spark = newSpark(days, "Cost by "+unit+", last "+plural(len(days), "whole day"))
	if unit == "day" { // the forecast is of a day in the organisation's zone
		t.Change = changeOf(expected, days[len(days)-1], "yesterday, by the forecast")
	}
	return t
}

// monthTile shows the cost this month with the forecast, compared with the organisation's monthly budget.
func monthTile(v *visit, f *overviewFacts, scope *money.Forecast) tile {
	used, expected := decimal(scope.ThisMonth), decimal(scope.Month.Expected)
	t := tile{
		Label: "Month to date", Value: usdOf(used),
		Path: v.path + "budgets?" + url.Values{"org": {v.org}}.Encode(), Fault: f.forecasts.Fault,
	}
	t.Note = usdOf(expected) + " forecast, no budget"
	i := slices.IndexFunc(f.budgets.Is.Budgets, func(b money.BudgetRow) bool { return b.Kind == "organisation" && b.Name == "per_month" })
	if i < 0 {
		return t
	}
	b := &f.budgets.Is.Budgets[i]
	t.budget(v, b)
	t.Status = monthStatus(v, b)
	if others := overScopes(willRunOut(f.budgets.Is.Budgets)); others != "" {
		if t.Status.Level == levelGood {
			t.Status = &status{levelWarn, others}
		} else {
			t.Status.Word += ", " + others
		}
	}
	return t
}

// budget compares the cost of a month with a budget.
func (t *tile) budget(v *visit, b *money.BudgetRow) {
	full := budgetBar(b)
	t.Bar, t.Unit = &full, "of "+amount(b.Limit)
	if decimal(b.Reserved) > 0 {
		t.Unit = "+ " + amount(b.Reserved) + " reserved of " + amount(b.Limit)
	}
	if b.Forecast != nil {
		t.Note = "Forecast " + amount(b.Forecast.Expected)
		if b.UsedUp != "" {
			t.Note += " " + forecastBasis(v, b)
		}
	}
}

// monthStatus rates the organisation's monthly budget.
func monthStatus(v *visit, b *money.BudgetRow) *status {
	switch {
	case b.Share() >= 1:
		return &status{levelBad, "Used up"}
	case b.UsedUp != "":
		return &status{levelBad, "Runs out " + runsOut(v, b)}
	case b.AtRisk():
		return &status{levelWarn, "Near limit"}
	}
	return &status{levelGood, "On track"}
}

// deniedTile shows the number of denied and throttled requests in the last 24 hours.
func deniedTile(v *visit, f *overviewFacts) tile {
	t := tile{
		Label: "Denied or throttled, 24 h",
		Path:  v.path + "requests?" + url.Values{"org": {v.org}, "refused": {"true"}}.Encode(), Fault: f.outcomes.Fault,
	}
	border := v.now().Add(-24 * time.Hour)
	var denied, throttled, before int64
	var hours []float64
	for i := range f.outcomes.Is.Counts {
		c := &f.outcomes.Is.Counts[i]
		if !c.Start.After(border.Add(-24 * time.Hour)) {
			continue // both sides have the same number of hours
		}
		if !c.Start.After(border) {
			before += c.Denied + c.Throttled
			continue
		}
		denied, throttled = denied+c.Denied, throttled+c.Throttled
		hours = append(hours, float64(c.Denied+c.Throttled))
	}
	t.Value = count(denied + throttled)
	t.Note = count(denied) + " denied, " + count(throttled) + " throttled"
	t.Change = changeOfCount(denied+throttled, before, "the previous 24 hours")
	t.Spark = newSpark(hours, "Denied or throttled requests by hour")
	return t
}

// overviewChart returns a chart of costs by team, with today's forecast if the range ends today and days are in UTC.
func overviewChart(v *visit, costs *money.Costs, scope *money.Forecast) chart.Chart {
	c := costChart(v, costs, "team")
	c.Title, c.Height = "Cost by team", overviewPlot
	n, expected := len(c.Buckets), decimal(scope.Day.Expected)
	if n > 0 && expected > 0 && c.Per == "day" && v.now().Before(c.Buckets[n-1].Start.Add(24*time.Hour)) {
		c.Forecast = slices.Repeat([]float64{math.NaN()}, n)
		c.Forecast[n-1] = expected
	}
	return c
}

// overviewBudgets lists the budgets that will run out first.
func overviewBudgets(v *visit, list []money.BudgetRow) table {
	return newTable(v, list[:min(overviewRows, len(list))], tableSpec[money.BudgetRow]{
		Name: "budgets", Caption: "Budgets, by the date they run out",
		Columns: budgetColumns(v),
		Empty: empty{
			Icon: "wallet", Title: "No budgets yet",
			Text: "Budgets of the organisation, its teams and its keys appear here. The budget that runs out first is at the top. Set a budget in the configuration.",
		},
	})
}

// deniedTable lists the latest denied requests with their reasons.
func deniedTable(v *visit, list []explain.Summary) table {
	return newTable(v, list, tableSpec[explain.Summary]{
		Name: "denied", Caption: "Latest denied requests",
		Path: func(s *explain.Summary) string { return v.Link("requests/" + url.PathEscape(s.DecisionID)) },
		Columns: []column[explain.Summary]{
			{Title: "Request", Cell: func(s *explain.Summary) cell { return textCell(s.Operation, callerText(s.Key, s.Team)) }},
			{Title: "Reason", Cell: reasonCell},
			{Title: "Time", Value: func(s *explain.Summary) any { return s.Time }},
		},
		Empty: empty{
			Icon: "check", Title: "No denials in the last 24 hours",
			Text: "Requests that a policy, a budget or a rate limit denies appear here, with the reason.",
		},
	})
}

// withoutAdvice returns the reason of a denial without the advice on how to request approval, which the console replaces by links.
func withoutAdvice(reason string) string {
	reason, _, _ = strings.Cut(reason, "; to request approval, ")
	reason, _, _ = strings.Cut(reason, "; an operator can approve ")
	return reason
}

// reasonCell shows the reason of a denial.
func reasonCell(s *explain.Summary) cell {
	return cell{Text: cmp.Or(readable(withoutAdvice(s.Reason)), words(s.Refusal)), Clamp: true}
}

// callerText returns the name of a key and its team.
func callerText(key, team string) string {
	if team == "" || team == key {
		return key
	}
	return key + ", team " + team
}

// offBecause reports whether a part is missing because the configuration disables it. This is not an error.
func offBecause[T any](p part[T]) bool { return p.Status == http.StatusBadRequest }
