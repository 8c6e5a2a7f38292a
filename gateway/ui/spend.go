package ui

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/money"
)

// spendData is the data of the page of spend.
type spendData struct {
	Costs part[money.Costs]
	// Before are the costs of the time of the same length before, by the same groups and buckets.
	Before    part[money.Costs]
	Forecasts part[money.Forecasts]
	Chart     chart
	// Groups are the sums of the groups, the dearest first.
	Groups []sum
	// Shown are those on the page.
	Shown excerpt[sum]
	// By is the grouping of the costs, Bucket the period of a column.
	By, Bucket string
	// CSV is the address of the same as CSV.
	CSV string
}

// sum is the cost of a group.
type sum struct {
	Name  string
	USD   float64
	Share float64 // of all
	// Before is the cost in the time before.
	Before float64
}

// Change returns by how much the cost differs from that of the time before, in words, "" where that had none.
func (s sum) Change() string {
	if s.Before <= 0 {
		return ""
	}
	return change(s.USD/s.Before - 1)
}

// change writes a share with its sign.
func change(share float64) string { return fmt.Sprintf("%+.0f %%", 100*share) }

// Compared reports whether there are costs of the time before.
func (d spendData) Compared() bool { return len(d.Before.Is.Rows) > 0 }

// Change returns by how much the total differs from that of the time before, in words, "" where that had none.
func (d spendData) Change() string {
	return sum{USD: decimal(d.Costs.Is.Total), Before: decimal(d.Before.Is.Total)}.Change()
}

// grouping returns the query of the costs, grouped by teams unless the page says otherwise.
func grouping(v *visit) url.Values {
	q := v.query(history)
	if q.Get("by") == "" {
		q.Set("by", "team")
	}
	return q
}

func spend(v *visit) (any, int, string) {
	q := grouping(v)
	d := spendData{Costs: ask[money.Costs](v, history, q), By: q.Get("by"), Bucket: cmp.Or(q.Get("bucket"), "day")}
	csv := v.r.URL.Query()
	csv.Set("org", v.org)
	d.CSV = "/ui/spend.csv?" + csv.Encode()
	if !d.Costs.OK() {
		return d, d.Costs.Status, d.Costs.Fault
	}
	from, to := d.Costs.Is.From, d.Costs.Is.To
	before := maps.Clone(q)
	before.Del("limit")
	before.Set("from", from.Add(from.Sub(to)).Format(time.RFC3339))
	before.Set("to", from.Format(time.RFC3339))
	together(
		func() { d.Before = ask[money.Costs](v, history, before) },
		func() { d.Forecasts = ask[money.Forecasts](v, "GET /admin/spend/forecast", nil) },
	)
	d.Groups = groups(&d.Costs.Is, &d.Before.Is, d.By)
	d.Shown = cut(v, d.Groups)
	d.Chart = newChart(&d.Costs.Is, d.By, d.Groups)
	d.Chart.compare(&d.Before.Is)
	d.Chart.forecast(expected(v, q, d.Bucket, d.Forecasts.Is.Scopes))
	d.Forecasts.Is.Scopes = withoutKeys(d.Forecasts.Is.Scopes, func(f *money.Forecast) string { return f.Scope })
	return d, 0, ""
}

// expected returns the bucket under way and its likely total, in USD, of the costs that a query selects; "" where no forecast is
// made of those.
func expected(v *visit, q url.Values, bucket string, scopes []money.Forecast) (label string, usd float64) {
	scope, filters := "organisation", 0
	for _, name := range []string{"team", "key", "kind", "resource", "gpu", "dc", "label"} {
		filters += len(q[name])
	}
	switch {
	case filters > 1 || filters == 1 && !q.Has("team") && !q.Has("key"):
		return "", 0
	case q.Has("team"):
		scope = "team " + q.Get("team")
	case q.Has("key"):
		scope = "key " + q.Get("key")
	}
	for i := range scopes {
		if f := &scopes[i]; f.Scope == scope && bucket == "day" {
			return v.now().UTC().Format(time.DateOnly), decimal(f.Day.Expected)
		} else if f.Scope == scope && bucket == "month" {
			return v.now().UTC().Format("2006-01") + "-01", decimal(f.Month.Expected)
		}
	}
	return "", 0
}

// groups adds the costs of each group up, and those of the time before. The dearest come first.
func groups(costs, before *money.Costs, by string) []sum {
	totals := make(map[string]*sum)
	of := func(c *money.Cost) *sum {
		name := groupOf(c, by)
		if totals[name] == nil {
			totals[name] = &sum{Name: name}
		}
		return totals[name]
	}
	all := 0.0
	for i := range costs.Rows {
		usd := decimal(costs.Rows[i].USD)
		of(&costs.Rows[i]).USD += usd
		all += usd
	}
	for i := range before.Rows {
		of(&before.Rows[i]).Before += decimal(before.Rows[i].USD)
	}
	out := make([]sum, 0, len(totals))
	for _, s := range totals {
		if all > 0 {
			s.Share = s.USD / all
		}
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b sum) int { return cmp.Or(cmp.Compare(b.USD, a.USD), strings.Compare(a.Name, b.Name)) })
	return out
}

// groupOf returns the name of the group of some costs.
func groupOf(c *money.Cost, by string) string {
	var names []string
	for dimension := range strings.SplitSeq(by, ",") {
		names = append(names, cmp.Or(dimensionOf(c, dimension), "without "+strings.TrimPrefix(dimension, "label:")))
	}
	return strings.Join(names, ", ")
}

func dimensionOf(c *money.Cost, dimension string) string {
	if label, ok := strings.CutPrefix(dimension, "label:"); ok {
		return c.Labels[label]
	}
	switch dimension {
	case "team":
		return c.Team
	case "key":
		return c.Key
	case "kind":
		return c.Kind
	case "gpu":
		return c.GPU
	case "dc":
		return c.DataCenter
	case "resource":
		return cmp.Or(c.Name, c.Resource)
	}
	return ""
}

// spendCSV serves the costs of the page as CSV.
func (c *Console) spendCSV(v *visit) {
	q := grouping(v)
	costs := ask[money.Costs](v, history, q)
	if !costs.OK() {
		v.fail(costs.Status, costs.Fault)
		return
	}
	by := strings.Split(q.Get("by"), ",")
	lines := [][]string{slices.Concat([]string{"start", "end"}, by, []string{"usd"})}
	for i := range costs.Is.Rows {
		r := &costs.Is.Rows[i]
		line := []string{r.Start.Format(time.RFC3339), r.End.Format(time.RFC3339)}
		for _, dimension := range by {
			line = append(line, dimensionOf(r, dimension))
		}
		lines = append(lines, append(line, r.USD))
	}
	var text bytes.Buffer
	if err := adminapi.WriteCSV(&text, lines); err != nil {
		v.fail(http.StatusInternalServerError, "the file cannot be made")
		return
	}
	v.w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	v.w.Header().Set("Content-Disposition", `attachment; filename="spend-`+v.org+`.csv"`)
	_, _ = v.w.Write(text.Bytes()) // the asker left
}
