package ui

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/ui/chart"
)

// costData holds the data of the cost explorer.
type costData struct {
	Costs    part[money.Costs]
	Compared part[money.Comparison]
	Filters  form
	Chips    []chip
	Tiles    []tile
	Chart    chart.Chart
	Groups   []tab
	Table    table

	by      string
	parents []link
	actions []button
}

// Head implements headed.
func (d costData) Head(*frame) head {
	return head{Title: "Cost explorer", Parents: d.parents, Actions: d.actions}
}

// costFilters are the parameters that filter costs.
//
//nolint:gochecknoglobals // read only
var costFilters = []string{"team", "key", "kind", "resource", "gpu", "dc", "label"}

// costGroups lists the dimensions that costs can be grouped by, with their titles.
//
//nolint:gochecknoglobals // read only
var costGroups = []struct{ by, title string }{
	{"team", "Team"}, {"key", "Key"}, {"gpu", "GPU type"}, {"kind", "Kind"}, {"dc", "Data centre"}, {"resource", "Resource"},
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

// earlier returns the query for the period of the same length before the range, in whole days if buckets are days.
func earlier(v *visit, q url.Values) url.Values {
	out := maps.Clone(q)
	days := int(math.Ceil(v.period.To.Sub(v.period.From).Hours() / 24))
	from := v.period.From.AddDate(0, 0, -days)
	if v.period.Bucket() == "hour" {
		from = v.period.From.Add(v.period.From.Sub(v.period.To)).Truncate(time.Hour)
	}
	out.Set("from", from.UTC().Truncate(time.Hour).Format(time.RFC3339))
	out.Set("to", q.Get("from"))
	return out
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
	d := costData{by: grouping(v)}
	var before part[money.Costs]
	var forecasts part[money.Forecasts]
	list := with(q, "by", d.by)
	for _, name := range []string{"sort", "cursor"} {
		if value := v.Query(name); value != "" {
			list.Set(name, value)
		}
	}
	together(
		func() { d.Costs = ask[money.Costs](v, history, with(q, "by", d.by, "bucket", bucket)) },
		func() { before = ask[money.Costs](v, history, with(earlier(v, q), "bucket", bucket)) },
		func() { d.Compared = ask[money.Comparison](v, compareRow, list) },
		func() { forecasts = ask[money.Forecasts](v, forecastRow, nil) },
	)
	d.Filters = costFilterForm(v)
	d.Chips = v.chips(d.Filters)
	if !d.Costs.OK() {
		return d, d.Costs.Status, d.Costs.Fault
	}
	d.Chart = costChart(v, "cost", &d.Costs.Is, d.by)
	if decimal(before.Is.Total) > 0 {
		d.Chart.Previous = sumsOf(&before.Is, bucket, len(d.Chart.Buckets))
	}
	f := forecastFor(q, forecasts.Is.Scopes)
	d.forecast(v, f)
	d.Tiles = d.tiles(v, f)
	d.Groups = d.groups(v)
	d.Table = d.table(v)
	d.links(v, q)
	return d, 0, ""
}

// kinds returns the options of a filter by resource kind.
func kinds(all string) []option {
	return append([]option{{"", all, false}}, options([]string{"pod", "endpoint", "network_volume", "cluster", "sandbox", "job", "adjustment"})...)
}

// costFilterForm returns the filters of the cost explorer.
func costFilterForm(v *visit) form {
	return v.filters(
		field{Name: "team", Label: "Team", Type: "select", Options: names("All teams", v.Teams(), "")},
		field{Name: "key", Label: "Key"}, field{Name: "kind", Label: "Kind", Type: "select", Options: kinds("All kinds")},
		field{Name: "gpu", Label: "GPU type"}, field{Name: "resource", Label: "Resource ID"},
		field{Name: "label", Label: "Label", Placeholder: "name=value"}, field{Name: "by_label", Label: "Group by label", Placeholder: "name"},
	)
}

// forecastFor returns the forecast of the organisation, team or key that a query selects, or nil if there is no forecast for its filters.
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
	i := slices.IndexFunc(scopes, func(f money.Forecast) bool { return f.Scope == scope })
	if i < 0 {
		return nil
	}
	return &scopes[i]
}

// forecast adds the expected cost of today and the daily budget to the chart.
func (d *costData) forecast(v *visit, f *money.Forecast) {
	c := &d.Chart
	if f == nil || v.period.Bucket() != "day" {
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
	sum := tile{Label: "Total, " + strings.ToLower(v.period.Label()), Value: usdOf(total), Change: changeOf(total, previous, than), Note: usdOf(previous) + " in the previous period", Fault: d.Compared.Fault}
	if d.Compared.Is.Unknown != "" {
		sum.Note = "The previous period is no longer kept"
	}
	hours := max(1, v.period.To.Sub(v.period.From).Hours())
	days := max(1, hours/24)
	tiles := []tile{sum, {Label: "Average per day", Value: usdOf(total / days), Note: fmt.Sprintf("over %.0f days", math.Ceil(days))}}
	if days <= 2 {
		tiles[1] = tile{Label: "Average per hour", Value: usdOf(total / hours), Note: fmt.Sprintf("over %.0f hours", math.Ceil(hours))}
	}
	if f != nil {
		tiles = append(tiles,
			tile{Label: "Burn rate now", Value: amount(f.PerHour), Unit: "per hour", Note: usdOf(decimal(f.PerHour)*hoursPerMonth) + " a month at this rate"},
			tile{Label: "Month to date", Value: amount(f.ThisMonth), Note: "Forecast " + amount(f.Month.Expected) + " (" + amount(f.Month.Low) + " to " + amount(f.Month.High) + ")", Path: v.Link("budgets")},
		)
	}
	return tiles
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
			d.parents = []link{{Title: "All costs", Path: v.Link("cost")}}
		}
	}
	file := v.r.URL.Query()
	file.Set("org", v.org)
	d.actions = []button{
		{Title: "CSV", Icon: "download", Path: v.path + "cost.csv?" + file.Encode()},
		{Title: "FOCUS", Icon: "download", Path: v.path + "focus.csv?" + file.Encode()},
	}
}

// table lists the groups with the share and trend of each.
func (d *costData) table(v *visit) table {
	rows := d.Compared.Is.Rows
	of := func(c *money.ComparedCost) *money.Cost {
		return &money.Cost{Team: c.Team, Key: c.Key, Kind: c.Kind, Resource: c.Resource, Name: c.Name, GPU: c.GPU, DataCenter: c.DataCenter, Labels: c.Labels}
	}
	shown := make([]groupSum, len(rows))
	for i := range rows {
		shown[i].id = groupID(of(&rows[i]), d.by)
	}
	series, _ := costSeries(&d.Costs.Is, d.by, d.Chart.Buckets, shown)
	columns := []column[money.ComparedCost]{
		{Key: "group", Title: title(groupTitle(d.by)), Cell: func(c *money.ComparedCost) cell { return d.groupCell(c, of(c)) }},
		{Key: "cost", Title: "Cost", Number: true, Param: "usd", Cell: func(c *money.ComparedCost) cell { return textCell(amount(c.USD)) }},
		{Key: "share", Title: "Share", Cell: func(c *money.ComparedCost) cell { return cell{Share: shareOf(c.Percent / 100)} }},
		{Key: "previous", Title: "Previous period", Number: true, Param: "previous", Cell: func(c *money.ComparedCost) cell { return textCell(amount(c.Previous)) }},
		{Key: "change", Title: "Change", Number: true, Param: "difference", Cell: func(c *money.ComparedCost) cell {
			if decimal(c.Previous) <= 0 && decimal(c.USD) > 0 && d.Compared.Is.Unknown == "" {
				return textCell("New")
			}
			return cell{Change: changeOf(decimal(c.USD), decimal(c.Previous), "the previous period")}
		}},
		{Key: "trend", Title: "Trend by " + v.bucketName(v.period.Bucket()), Cell: func(c *money.ComparedCost) cell {
			name := groupName(of(c), d.by)
			return cell{Spark: newSpark(series[groupID(of(c), d.by)], "Cost of "+name+" by "+v.bucketName(v.period.Bucket()))}
		}},
	}
	return newTable(v, rows, tableSpec[money.ComparedCost]{
		Name: "costs", Caption: "Cost by " + groupTitle(d.by), Columns: columns, Next: v.older("cursor", d.Compared.Is.Next), Prev: v.newest("cursor"), Path: func(c *money.ComparedCost) string { return d.drill(v, c) },
		Empty: empty{
			Icon: "chart", Title: "No cost in this period", Text: "Choose a longer time range, or remove filters. Costs appear here an instant after the first resource is rented through the gateway.",
			Code: &code{"call", "curl -X POST $GATEWAY/v2/pods -H \"Authorization: Bearer $KEY\" -H 'Content-Type: application/json' -d '{\"name\":\"first\",\"image\":\"acme/train:3\",\"gpu\":{\"id\":\"NVIDIA L4\",\"count\":1}}'"},
		},
	})
}

// groupCell shows the name of a group.
func (d *costData) groupCell(c *money.ComparedCost, of *money.Cost) cell {
	if d.by == "resource" && c.Name != "" {
		return textCell(c.Name, c.Resource, strings.TrimSpace(c.Kind+" "+c.GPU))
	}
	return textCell(groupName(of, d.by))
}

// drill returns the address of a group's costs by resource. For a resource, it returns the address of its page. It returns "" for
// adjustments and for costs without a value in the dimension.
func (d *costData) drill(v *visit, c *money.ComparedCost) string {
	if d.by == "resource" {
		if c.Kind == "adjustment" {
			return ""
		}
		return v.Link("resources/" + url.PathEscape(c.Resource))
	}
	name, value := d.by, map[string]string{"team": c.Team, "key": c.Key, "kind": c.Kind, "gpu": c.GPU, "dc": c.DataCenter}[d.by]
	if label, ok := strings.CutPrefix(d.by, "label:"); ok && c.Labels[label] != "" {
		name, value = "label", label+"="+c.Labels[label]
	}
	if value == "" {
		return ""
	}
	return v.With(name, value, "by", "resource", "by_label", "", "sort", "", "cursor", "", "cols", "")
}

// costCSV serves the costs of the explorer by bucket and group as CSV.
func (c *Console) costCSV(v *visit) {
	v.enter(v.pageNamed("cost"))
	by := grouping(v)
	costs := ask[money.Costs](v, history, with(costQuery(v), "by", by, "bucket", cmp.Or(v.Query("bucket"), v.period.Bucket())))
	if !costs.OK() {
		v.fail(costs.Status, costs.Fault)
		return
	}
	dimensions := strings.Split(by, ",")
	lines := [][]string{slices.Concat([]string{"start", "end"}, dimensions, []string{"usd"})}
	for i := range costs.Is.Rows {
		r := &costs.Is.Rows[i]
		line := []string{r.Start.Format(time.RFC3339), r.End.Format(time.RFC3339)}
		for _, dimension := range dimensions {
			line = append(line, dimensionOf(r, dimension))
		}
		lines = append(lines, append(line, r.USD))
	}
	var text bytes.Buffer
	if err := adminapi.WriteCSV(&text, lines); err != nil {
		v.fail(http.StatusInternalServerError, "cannot write the CSV file")
		return
	}
	v.download("cost", text.Bytes())
}

// focusCSV serves the costs of the explorer as CSV with the columns of FOCUS 1.2.
func (c *Console) focusCSV(v *visit) {
	v.enter(v.pageNamed("cost"))
	write := ask[adminapi.Writer](v, exportRow, costQuery(v))
	if !write.OK() {
		v.fail(write.Status, write.Fault)
		return
	}
	var text bytes.Buffer
	if err := write.Is(&text); err != nil {
		v.fail(adminapi.StatusOf(err))
		return
	}
	v.download("focus", text.Bytes())
}

// download sends a CSV file as an attachment.
func (v *visit) download(name string, text []byte) {
	v.w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	v.w.Header().Set("Content-Disposition", `attachment; filename="`+name+`-`+v.org+`.csv"`)
	_, _ = v.w.Write(text) // the client disconnected
}
