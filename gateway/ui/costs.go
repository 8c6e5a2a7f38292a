package ui

import (
	"cmp"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/ui/chart"
)

// costData holds the data of the cost explorer.
type costData struct {
	listing

	Costs    part[money.Costs]
	Compared part[money.Comparison]
	Chart    chart.Chart
	Groups   []tab

	by string
	// since is the day of the organisation's first recorded cost. It is zero if it is unknown, or long ago.
	since time.Time
}

// costFilters are the parameters that filter costs.
//
//nolint:gochecknoglobals // read only
var costFilters = []string{"team", "key", "kind", "resource", "gpu", "dc", "label"}

// costGroups lists the dimensions that costs can be grouped by, with their titles.
//
//nolint:gochecknoglobals // read only
var costGroups = []struct{ by, title string }{
	{"team", "Team"}, {"gpu", "GPU type"}, {"key", "Key"}, {"resource", "Resource"}, {"kind", "Kind"}, {"dc", "Data centre"},
}

// grouping returns the dimension that the page groups costs by.
func grouping(v *visit) string {
	if label := v.Query("by_label"); label != "" {
		return "label:" + label
	}
	return cmp.Or(v.Query("by"), "team")
}

// costQuery returns the query of the page's costs in its time range.
func costQuery(v *visit) url.Values {
	q := v.period.Values()
	for _, name := range costFilters {
		for _, value := range v.r.URL.Query()[name] {
			if value != "" {
				q.Add(name, value)
			}
		}
	}
	return q
}

// before returns the costs by bucket of the period that the costs are compared with.
func (d *costData) before(v *visit, q url.Values) (out part[money.Costs]) {
	c := &d.Compared.Is
	if !d.Compared.OK() || c.Unknown != "" {
		return out
	}
	return ask[money.Costs](v, history, with(q, "bucket", v.period.Bucket(), "from", c.PreviousFrom.Format(time.RFC3339), "to",
		c.PreviousTo.Format(time.RFC3339)))
}

// with returns a copy of a query with additional parameters.
func with(q url.Values, pairs ...string) url.Values {
	out := maps.Clone(q)
	for i := 0; i+1 < len(pairs); i += 2 {
		out.Set(pairs[i], pairs[i+1])
	}
	return out
}

func costExplorer(v *visit) (any, int, string) {
	q, bucket := costQuery(v), v.period.Bucket()
	d := costData{listing: v.filtered(costFilterFields(v)...), by: grouping(v)}
	var before part[money.Costs]
	var forecasts part[money.Forecasts]
	list := with(q, "by", d.by)
	maps.Copy(list, v.given("sort", "cursor"))
	together(
		func() { d.Costs = ask[money.Costs](v, history, with(q, "by", d.by, "bucket", bucket)) },
		func() {
			d.Compared = ask[money.Comparison](v, compareRow, list)
			before = d.before(v, q)
		},
		func() { forecasts = ask[money.Forecasts](v, forecastRow, nil) },
	)
	for i := range forecasts.Is.Scopes {
		if key, ok := strings.CutPrefix(forecasts.Is.Scopes[i].Scope, "key "); ok {
			d.Filters.Fields[1].suggest(key)
		}
	}
	for i := range d.Compared.Is.Rows {
		r := &d.Compared.Is.Rows[i]
		d.Filters.Fields[3].suggest(r.GPU)
		d.Filters.Fields[4].suggest(r.Resource)
		d.Filters.Fields[5].suggest(pairList(r.Labels)...)
	}
	d.since = recorded(v, scopeOf(forecasts.Is.Scopes, "organisation"))
	if len(d.Chips) == 1 && (v.Query("team") != "" || v.Query("key") != "") {
		d.Title = "Cost of " + strings.ToLower(d.Chips[0].Label) + " " + d.Chips[0].Value
	}
	if !d.Costs.OK() {
		return d, d.Costs.Status, d.Costs.Fault
	}
	d.Chart = costChart(v, &d.Costs.Is, d.by)
	if decimal(before.Is.Total) > 0 {
		d.Chart.Previous = previousSums(&d.Costs.Is, &before.Is, bucket, len(d.Chart.Buckets))
	}
	f := forecastFor(q, forecasts.Is.Scopes)
	d.forecast(v, f)
	d.Groups = d.groups(v)
	d.Table = d.table(v)
	d.links(v, q)
	if len(d.Costs.Is.Rows) == 0 && len(d.Chips) > 0 {
		d.unmatched(v, q)
		return d, 0, ""
	}
	d.Tiles = d.tiles(v, f)
	return d, 0, ""
}

// unmatched explains filters that match no cost: it suggests the values of the first filter that have costs in the time range.
func (d *costData) unmatched(v *visit, q url.Values) {
	for i := range d.Filters.Fields {
		x := &d.Filters.Fields[i]
		by, _, _ := strings.Cut(x.Value, "=")
		if by = map[bool]string{true: "label:" + by, false: x.Name}[x.Name == "label"]; x.Value == "" || !q.Has(x.Name) {
			continue
		}
		costs := ask[money.Costs](v, history, with(v.period.Values(), "by", by, "bucket", "total"))
		for j := range costs.Is.Rows {
			value := dimensionOf(&costs.Is.Rows[j].CostGroup, by)
			if x.Name == "label" && value != "" {
				value = strings.TrimPrefix(by, "label:") + "=" + value
			}
			x.suggest(value)
		}
		d.Table.Empty.Text = "No cost in this period matches the filter " + x.Label + " " + strconv.Quote(x.Value) + "."
		if n := min(5, len(x.Suggest)); n > 0 {
			d.Table.Empty.Text += " Values with costs: " + strings.Join(x.Suggest[:n], ", ") + "."
		}
		return
	}
}

// recorded returns the day of an organisation's first recorded cost according to its forecast, which uses whole days after the first one. It
// returns the zero time if the forecast is missing or uses all days that forecasts may use.
func recorded(v *visit, f *money.Forecast) time.Time {
	const known = 50
	if f.Scope == "" || f.Days > known {
		return time.Time{}
	}
	today := v.now().UTC().Truncate(24 * time.Hour)
	first := today.AddDate(0, 0, -f.Days-1)
	if f.Days == 0 { // the first cost is of yesterday or today
		span := url.Values{"from": {first.Format(time.RFC3339)}, "to": {today.Format(time.RFC3339)}, "bucket": {"total"}}
		if costs := ask[money.Costs](v, history, span); costs.OK() && len(costs.Is.Rows) == 0 {
			return today
		}
	}
	return first
}

// kinds returns the options of a filter by resource kind.
func kinds(all string) []option {
	return append([]option{{"", all, false}},
		options([]string{"pod", "endpoint", "network_volume", "cluster", "sandbox", "job", "adjustment"})...)
}

// costFilterFields returns the filters of the cost explorer.
func costFilterFields(v *visit) []field {
	return []field{
		{Name: "team", Label: "Team", Type: "select", Options: names("All teams", v.Teams(), "")},
		{Name: "key", Label: "Key"},
		{Name: "kind", Label: "Kind", Type: "select", Options: kinds("All kinds")},
		{Name: "gpu", Label: "GPU type"},
		{Name: "resource", Label: "Resource ID"},
		{Name: "label", Label: "Label", Placeholder: "name=value"},
		{Name: "by_label", Label: "Group by label", Placeholder: "name"},
	}
}

// forecastFor returns the forecast of the organisation, team or key that a query selects, or nil if its filters have no forecast.
func forecastFor(q url.Values, scopes []money.Forecast) *money.Forecast {
	scope, filters := "organisation", 0
	for _, name := range costFilters {
		filters += len(q[name])
	}
	switch {
	case filters > 1 || filters == 1 && !q.Has("team") && !q.Has("key"):
		return nil
	case q.Has("team"):
		scope = "team " + q.Get("team")
	case q.Has("key"):
		scope = "key " + q.Get("key")
	}
	if f := scopeOf(scopes, scope); f.Scope != "" {
		return f
	}
	return nil
}

// forecast adds the expected cost of today and the daily budget to a chart of days. In other zones than UTC, both are for other days than
// the days of the chart.
func (d *costData) forecast(v *visit, f *money.Forecast) {
	c := &d.Chart
	if f == nil || v.bucketName(v.period.Bucket()) != "day" {
		return
	}
	for i, b := range c.Buckets {
		if !v.now().Before(b.Start) && v.now().Before(b.Start.Add(b.Length)) {
			c.Forecast = slices.Repeat([]float64{math.NaN()}, len(c.Buckets))
			c.Forecast[i] = decimal(f.Day.Expected)
		}
	}
	for _, b := range f.Budgets {
		if b.Name == "per_day" {
			c.Limit = &chart.Limit{Name: "Daily budget", Value: decimal(b.Limit)}
		}
	}
}

// tiles returns the metrics above the chart.
func (d *costData) tiles(v *visit, f *money.Forecast) []tile {
	total, previous := decimal(d.Compared.Is.Total), decimal(d.Compared.Is.Previous)
	than := "the previous period"
	sum := tile{
		Label: "Total, " + lower(v.period.Label()), Value: usdOf(total), Change: changeOf(total, previous, than),
		Note: usdOf(previous) + " in the previous period", Fault: d.Compared.Fault,
	}
	from, since := v.period.From.Truncate(time.Hour), "" // costs are recorded by hour
	if v.period.Name == lastHour {
		sum.Label, sum.Change = "Total since "+from.Format("15:04"), nil // the previous period has whole hours
		sum.Note = usdOf(previous) + " from " + d.Compared.Is.PreviousFrom.In(v.zone()).Format("15:04") + " to " +
			d.Compared.Is.PreviousTo.In(v.zone()).Format("15:04")
	}
	if d.since.After(from) {
		from, since = d.since, ", since "+d.since.Format("2 Jan")
	}
	switch {
	case d.Compared.Is.Unknown != "":
		sum.Note = "Costs of the previous period are no longer stored"
	case d.unrecorded():
		sum.Note = "No cost recorded before " + d.since.Format("2 Jan 2006")
	case d.since.After(d.Compared.Is.PreviousFrom):
		sum.Note += ", recorded since " + d.since.Format("2 Jan")
	}
	tiles := []tile{sum}
	if hours := v.period.To.Sub(from).Hours(); hours > 0 {
		tiles = append(tiles, averageTile(total, hours, since))
	} else {
		tiles[0].Value = "–"
	}
	if f != nil {
		tiles = append(tiles, tile{
			Label: "Burn rate now", Value: amount(f.PerHour), Unit: "per hour",
			Note: usdOf(decimal(f.PerHour)*hoursPerMonth) + " per month at this rate",
		}, monthOf(v, f))
	}
	return tiles
}

// averageTile shows a cost per hour or, for a time of more than two days, per day. since says when the time begins and may be empty.
func averageTile(total, hours float64, since string) tile {
	if hours <= 48 {
		return tile{
			Label: "Average per hour", Value: usdOf(total / max(1, hours)),
			Note: "over " + plural(max(1, int(math.Round(hours))), "hour") + since,
		}
	}
	days := strings.TrimSuffix(strconv.FormatFloat(hours/24, 'f', 1, 64), ".0")
	return tile{Label: "Average per day", Value: usdOf(total / (hours / 24)), Note: "over " + days + " days" + since}
}

// monthOf shows the cost of a scope this month with its forecast, compared with the monthly budget of the scope.
func monthOf(v *visit, f *money.Forecast) tile {
	t := tile{
		Label: "Month to date", Value: amount(f.ThisMonth),
		Note: "Forecast " + amount(f.Month.Expected) + " (" + amount(f.Month.Low) + " to " + amount(f.Month.High) + ")",
		Path: v.Link("budgets", "team", v.Query("team")),
	}
	for i := range f.Budgets {
		if b := &f.Budgets[i]; b.Name == "per_month" {
			now := v.Now()
			ends := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, now.Location())
			t.budget(v, &money.BudgetRow{Budget: *b, Forecast: &f.Month, PerHour: f.PerHour, Ends: &ends})
		}
	}
	return t
}

// unrecorded reports whether the previous period ended before the first recorded cost.
func (d *costData) unrecorded() bool {
	return d.Compared.OK() && decimal(d.Compared.Is.Previous) == 0 && !d.since.Before(d.Compared.Is.PreviousTo)
}

// groups returns links to the other groupings.
func (d *costData) groups(v *visit) (list []tab) {
	for _, g := range costGroups {
		list = append(list, tab{Title: g.title, Path: v.With("by", g.by, "by_label", "", "sort", "", "cursor", ""), Here: d.by == g.by})
	}
	if label, ok := strings.CutPrefix(d.by, "label:"); ok {
		list = append(list, tab{Title: "Label " + label, Path: v.Here(), Here: true})
	}
	return list
}

// links sets the links in the header: back from a drill-down, and downloads.
func (d *costData) links(v *visit, q url.Values) {
	for _, name := range costFilters {
		if q.Has(name) {
			d.Parents = v.parents("All costs", "cost")
		}
	}
	file := v.r.URL.Query()
	file.Set("org", v.org)
	d.Actions = []button{
		{Title: "Download CSV", Icon: "download", Path: v.path + "cost.csv?" + file.Encode()},
		{Title: "Download FOCUS", Icon: "download", Path: v.path + "focus.csv?" + file.Encode()},
	}
}

// table lists the groups with the share and trend of each.
func (d *costData) table(v *visit) table {
	rows := d.Compared.Is.Rows
	shown := make([]groupSum, len(rows))
	for i := range rows {
		shown[i].id = groupID(&rows[i].CostGroup, d.by)
	}
	series, _ := costSeries(&d.Costs.Is, d.by, d.Chart.Buckets, shown)
	columns := []column[money.ComparedCost]{
		{Key: "group", Title: title(groupTitle(d.by)), Cell: d.groupCell},
		{Key: "cost", Title: "Cost", Param: "usd", Number: true, Value: func(c *money.ComparedCost) any { return dollars(c.USD) }},
		{Key: "share", Title: "Share", Cell: func(c *money.ComparedCost) cell { return cell{Share: shareOf(c.Percent / 100)} }},
		{
			Key: "previous", Title: "Previous period", Number: true, Param: "previous",
			Cell: func(c *money.ComparedCost) cell {
				if d.unrecorded() {
					return textCell("–")
				}
				return textCell(amount(c.Previous))
			},
		},
		{Key: "change", Title: "Change", Number: true, Param: "difference", Cell: func(c *money.ComparedCost) cell {
			switch {
			case d.unrecorded():
				return textCell("–")
			case decimal(c.Previous) <= 0 && decimal(c.USD) > 0 && d.Compared.Is.Unknown == "":
				return textCell("New")
			}
			return cell{Change: changeOf(decimal(c.USD), decimal(c.Previous), "the previous period")}
		}},
		{Key: "trend", Title: "Trend by " + v.bucketName(v.period.Bucket()), Cell: func(c *money.ComparedCost) cell {
			name := groupName(&c.CostGroup, d.by)
			return cell{Spark: newSpark(v.whole(&d.Costs.Is, series[groupID(&c.CostGroup, d.by)]), "Cost of "+name+" by "+v.bucketName(v.period.Bucket()))}
		}},
	}
	return newTable(v, rows, tableSpec[money.ComparedCost]{
		Name: "costs", Caption: "Cost by " + groupTitle(d.by), Columns: columns, Order: "usd", Next: v.older("cursor", d.Compared.Is.Next),
		Prev: v.newest("cursor"), Path: func(c *money.ComparedCost) string { return d.drill(v, c) },
		Empty: d.empty(v, empty{
			Icon: "chart", Title: "No cost in this period",
			Text: "Costs appear here as soon as a resource is created through the gateway. Choose a longer time range, or create a resource:",
			Code: firstCall(),
		}),
	})
}

// groupCell shows the name of a group.
func (d *costData) groupCell(c *money.ComparedCost) cell {
	if d.by == "resource" && c.Name != "" {
		return textCell(c.Name, c.Resource, strings.TrimSpace(c.Kind+" "+c.GPU))
	}
	return textCell(groupName(&c.CostGroup, d.by))
}

// drill returns the address of a group's costs by resource. For a resource, it returns the address of its page. It returns "" for
// adjustments and for costs without a value in the dimension.
func (d *costData) drill(v *visit, c *money.ComparedCost) string {
	if d.by == "resource" {
		if c.Kind == "adjustment" {
			return ""
		}
		var span []string
		if all := &d.Compared.Is; decimal(c.USD) == 0 { // the resource has costs only in the previous period
			span = []string{"range", "", "from", all.PreviousFrom.Format(time.RFC3339), "to", all.To.Format(time.RFC3339)}
		}
		return v.Link("resources/"+url.PathEscape(c.Resource), span...)
	}
	name, value := d.by, dimensionOf(&c.CostGroup, d.by)
	if value == "" {
		return ""
	}
	if label, ok := strings.CutPrefix(d.by, "label:"); ok {
		name, value = "label", label+"="+value
	}
	return v.With(name, value, "by", "resource", "by_label", "", "sort", "", "cursor", "", "cols", "")
}
