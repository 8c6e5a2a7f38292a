package ui

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/ui/chart"
)

// bucketsOf returns the time buckets of the range of costs.
func bucketsOf(costs *money.Costs, bucket string) (list []chart.Bucket) {
	start := func(t time.Time) time.Time { return t.UTC().Truncate(time.Hour) }
	next := func(t time.Time) time.Time { return t.Add(time.Hour) }
	switch bucket {
	case "day":
		start = func(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }
		next = func(t time.Time) time.Time { return t.Add(24 * time.Hour) }
	case "month":
		start = func(t time.Time) time.Time {
			return time.Date(t.UTC().Year(), t.UTC().Month(), 1, 0, 0, 0, 0, time.UTC)
		}
		next = func(t time.Time) time.Time { return t.AddDate(0, 1, 0) }
	}
	for at := start(costs.From); at.Before(costs.To) && len(list) < 10_000; at = next(at) {
		list = append(list, chart.Bucket{Start: at, Length: next(at).Sub(at)})
	}
	return list
}

// groupSum is the cost of a group in a time range.
type groupSum struct {
	id, name string
	usd      float64
}

// groupSums returns the costs of all groups, the highest first.
func groupSums(costs *money.Costs, by string) (list []groupSum) {
	at := make(map[string]int)
	for i := range costs.Rows {
		r := &costs.Rows[i]
		id := groupID(&r.CostGroup, by)
		if _, known := at[id]; !known {
			at[id] = len(list)
			list = append(list, groupSum{id: id, name: groupName(&r.CostGroup, by)})
		}
		list[at[id]].usd += decimal(r.USD)
	}
	slices.SortStableFunc(list, func(a, b groupSum) int {
		return cmp.Or(cmp.Compare(b.usd, a.usd), strings.Compare(a.name, b.name), strings.Compare(a.id, b.id))
	})
	return list
}

// costSeries returns the costs of the shown groups by bucket, indexed by group ID. rest is the sum of all other groups by bucket. A range
// has few shown groups and may have thousands of other groups.
func costSeries(costs *money.Costs, by string, buckets []chart.Bucket, shown []groupSum) (series map[string][]float64, rest []float64) {
	series, rest = make(map[string][]float64, len(shown)), make([]float64, len(buckets))
	for _, g := range shown {
		series[g.id] = make([]float64, len(buckets))
	}
	for i := range costs.Rows {
		r := &costs.Rows[i]
		n, _ := slices.BinarySearchFunc(buckets, r.Start, func(b chart.Bucket, t time.Time) int { return b.Start.Compare(t) })
		if n == len(buckets) || !buckets[n].Start.Equal(r.Start) {
			n--
		}
		if n < 0 {
			continue
		}
		if values := series[groupID(&r.CostGroup, by)]; values != nil {
			values[n] += decimal(r.USD)
		} else {
			rest[n] += decimal(r.USD)
		}
	}
	return series, rest
}

// bucketName names a bucket of costs. The ledger keeps costs of days in UTC, which differ from the days of other zones.
func (v *visit) bucketName(bucket string) string {
	if bucket == "hour" || v.zone() == time.UTC {
		return bucket
	}
	return "UTC " + bucket
}

// costChart returns a chart of costs by group and bucket.
func costChart(v *visit, costs *money.Costs, by string) chart.Chart {
	bucket := bucketOf(costs, v.period.Bucket())
	c := chart.Chart{
		ID: "cost", Title: "Cost by " + groupTitle(by), Unit: chart.USD, Per: v.bucketName(bucket), Total: true,
		Now: v.now(), From: costs.From, To: costs.To, Empty: "No cost in this period.",
	}
	c.Buckets = bucketsOf(costs, bucket)
	if bucket == "hour" {
		c.Zone = v.zone()
	}
	shown, others := groupSums(costs, by), 0
	if n := chart.MaxSeries - 1; len(shown) > n+1 {
		shown, others = shown[:n], len(shown)-n
	}
	series, rest := costSeries(costs, by, c.Buckets, shown)
	distinguish(shown)
	for _, g := range shown {
		c.Series = append(c.Series, chart.Series{Name: g.name, Values: series[g.id]})
	}
	if others > 0 {
		c.Series = append(c.Series, chart.Series{Name: plural(others, "other"), Class: "series-other", Values: rest})
	}
	if len(c.Series) == 0 {
		c.Buckets = nil
	}
	return c
}

// distinguish appends the ID to each name that is not unique.
func distinguish(groups []groupSum) {
	named := make(map[string]int)
	for i := range groups {
		named[groups[i].name]++
	}
	for i := range groups {
		if g := &groups[i]; named[g.name] > 1 {
			g.name += " (" + short(strings.ReplaceAll(g.id, "\x00", ", ")) + ")"
		}
	}
}

// bucketOf returns the bucket length of the rows in costs: a month if a row is longer than a day, and otherwise the requested length. The
// last row can be shorter, because it ends with the range.
func bucketOf(costs *money.Costs, asked string) string {
	if len(costs.Rows) > 0 && costs.Rows[0].End.Sub(costs.Rows[0].Start) > 24*time.Hour {
		return "month"
	}
	return asked
}

// sumsOf returns the cost of each of the last n buckets.
func sumsOf(costs *money.Costs, bucket string, n int) []float64 {
	buckets := bucketsOf(costs, bucket)
	_, sums := costSeries(costs, "", buckets, nil)
	return sums[max(0, len(sums)-n):]
}

// previousSums returns the cost of the previous period for each of the n buckets of costs. A previous period that was rounded to days can
// begin one bucket later.
func previousSums(costs, previous *money.Costs, bucket string, n int) []float64 {
	const day = 24 * time.Hour
	sums := sumsOf(previous, bucket, n)
	if bucket == "day" && previous.From.Equal(previous.From.Truncate(day)) && costs.From.Round(day).After(costs.From) {
		return slices.Insert(sums, 0, math.NaN())
	}
	return sums
}

// whole returns the values of the buckets that have ended. The last bucket of costs up to now is incomplete, so a line would end in a drop.
func (v *visit) whole(costs *money.Costs, values []float64) []float64 {
	if !costs.To.After(v.now().Truncate(time.Hour)) {
		return values
	}
	return values[:max(0, len(values)-1)]
}

// groupID returns the ID of the group that a cost belongs to.
func groupID(c *money.CostGroup, by string) string {
	var parts []string
	for dimension := range strings.SplitSeq(by, ",") {
		parts = append(parts, dimensionOf(c, dimension))
	}
	return strings.Join(parts, "\x00")
}

// groupName returns the name of the group that a cost belongs to.
func groupName(c *money.CostGroup, by string) string {
	var names []string
	for dimension := range strings.SplitSeq(by, ",") {
		name := dimensionOf(c, dimension)
		if dimension == "resource" {
			name = cmp.Or(c.Name, name)
		}
		names = append(names, cmp.Or(name, noneOf(dimension)))
	}
	return strings.Join(names, ", ")
}

// noneOf returns the group name of costs without a value in a dimension.
func noneOf(dimension string) string {
	if label, ok := strings.CutPrefix(dimension, "label:"); ok {
		return "No label " + label
	}
	return "No " + groupTitle(dimension)
}

// groupTitle returns the name of a grouping for use in a sentence.
func groupTitle(by string) string {
	var titles []string
	for dimension := range strings.SplitSeq(by, ",") {
		name := strings.Replace(dimension, "label:", "label ", 1)
		for _, g := range costGroups {
			if g.by == dimension {
				name = lower(g.title)
			}
		}
		titles = append(titles, strings.Replace(name, "gPU", "GPU", 1))
	}
	return strings.Join(titles, " and ")
}

// dimensionOf returns the value of a cost in a dimension, or the name of its resource if dimension is "name".
func dimensionOf(c *money.CostGroup, dimension string) string {
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
		return c.Resource
	case "name":
		return c.Name
	}
	return ""
}
