package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Dimension is a field for grouping and filtering costs in a [Query]: one of the constants, or a label.
type Dimension string

// Dimensions of costs.
const (
	ByTeam       Dimension = "team"
	ByKey        Dimension = "key"
	ByKind       Dimension = "kind"
	ByResource   Dimension = "resource"
	ByGPU        Dimension = "gpu"
	ByDataCenter Dimension = "dc"
)

// byLabel is the prefix of label dimensions.
const byLabel = "label:"

// Label returns the name of the label if d is a label dimension.
func (d Dimension) Label() (name string, ok bool) { return strings.CutPrefix(string(d), byLabel) }

// Values returns all dimensions except labels.
func (Dimension) Values() []Dimension {
	return []Dimension{ByTeam, ByKey, ByKind, ByResource, ByGPU, ByDataCenter}
}

// in returns the item's value for a dimension.
func (i *Item) in(d Dimension) string {
	if name, ok := d.Label(); ok {
		return i.Labels.Get(name)
	}
	return *i.member(d)
}

// member returns a pointer to the item's field for a dimension that is not a label.
func (i *Item) member(d Dimension) *string {
	switch d {
	case ByTeam:
		return &i.Team
	case ByKey:
		return &i.Key
	case ByKind:
		return &i.Kind
	case ByGPU:
		return &i.GPU
	case ByDataCenter:
		return &i.DataCenter
	case ByResource:
	}
	return &i.Resource
}

// compare orders items by their values in all dimensions.
func (i *Item) compare(other *Item) int {
	for _, d := range Dimension.Values("") {
		if order := cmp.Compare(*i.member(d), *other.member(d)); order != 0 {
			return order
		}
	}
	return cmp.Or(cmp.Compare(i.Labels, other.Labels), cmp.Compare(i.Rate, other.Rate), cmp.Compare(i.List, other.List),
		cmp.Compare(i.GB, other.GB))
}

// Additional buckets for summing costs, in UTC; see also [Hourly] and [Daily].
const (
	Monthly Unit = "month"
	// Total is a single bucket for the whole range.
	Total Unit = "total"
)

// Query selects and groups costs.
type Query struct {
	// From (inclusive) and To (exclusive) limit the range. Both are whole hours.
	From, To time.Time
	Bucket   Unit
	By       []Dimension
	// Where selects the costs that have one of the given values in each dimension. The value "" selects costs without a value.
	Where map[Dimension][]string
	// Rates separates costs of different rates.
	Rates bool
}

// ErrRange means that the queried range is invalid or is no longer stored.
var ErrRange = errors.New("ledger: invalid time range")

// Query returns the costs selected by q up to now, sorted by time and then by amount in descending order. The items of the result contain
// only the members that costs are grouped by. If costs are grouped by [ByResource], the items also contain the known facts about the
// resource.
func (h *History) Query(ctx context.Context, org string, q *Query, now time.Time) ([]Rollup, error) {
	hours, days, err := q.units(h.Retention, now)
	if err != nil {
		return nil, err
	}
	rows, err := h.costs(ctx, org, hours, days)
	if err != nil {
		return nil, err
	}
	return q.sum(slices.DeleteFunc(rows, func(r Rollup) bool { return r.Start.Before(q.From) || !r.Start.Before(q.To) })), nil
}

// units returns the hours and days needed to answer a query.
func (q *Query) units(keep Retention, now time.Time) (hours, days []time.Time, err error) {
	if !q.From.Before(q.To) || !q.From.Equal(Hourly.Start(q.From)) || !q.To.Equal(Hourly.Start(q.To)) {
		return nil, nil, fmt.Errorf("%w: start and end must be whole hours, and start must be before end", ErrRange)
	}
	for at := q.From.UTC(); at.Before(q.To); {
		u := Hourly
		if next := at.Add(Daily.Length()); q.Bucket != Hourly && at.Equal(Daily.Start(at)) && !next.After(q.To) {
			u = Daily
			days = append(days, at)
		} else {
			hours = append(hours, at)
		}
		if !keep.End(u, at).After(now) {
			return nil, nil, fmt.Errorf("%w: hourly costs are kept for %d days and daily costs for %d days", ErrRange, keep.Hourly, keep.Daily)
		}
		at = at.Add(u.Length())
	}
	return hours, days, nil
}

// start returns the start of the bucket that contains a time.
func (q *Query) start(at time.Time) time.Time {
	switch q.Bucket {
	case Hourly, Daily:
		return q.Bucket.Start(at)
	case Monthly:
		return time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
	case Total:
	}
	return q.From.UTC()
}

// sum groups roll-ups.
func (q *Query) sum(rows []Rollup) []Rollup {
	facts, terms := factsOf(rows)
	type group struct {
		start int64
		item  Item
	}
	sums := make(map[group]int64)
	for _, r := range rows {
		id := billedOf(&r.Item)
		item := facts[id]
		item.Owner = r.Item.Owner
		if q.Rates {
			item.Terms = terms[rateOf{id, r.Item.Rate}]
		}
		if !q.wants(&item) {
			continue
		}
		by := Item{Terms: item.Terms}
		for _, d := range q.By {
			if name, ok := d.Label(); ok {
				by.Labels = by.Labels.with(name, item.Labels.Get(name))
				continue
			}
			if d == ByResource {
				owner := by.Owner
				by = item
				by.Owner = owner
				continue
			}
			*by.member(d) = *item.member(d)
		}
		sums[group{q.start(r.Start).Unix(), by}] += r.Micro
	}
	out := make([]Rollup, 0, len(sums))
	for g, micro := range sums {
		if micro != 0 {
			out = append(out, Rollup{Start: time.Unix(g.start, 0).UTC(), Item: g.item, Micro: micro})
		}
	}
	slices.SortFunc(out, func(a, b Rollup) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(b.Micro, a.Micro), a.Item.compare(&b.Item))
	})
	return out
}

func (q *Query) wants(item *Item) bool {
	for d, values := range q.Where {
		if !slices.Contains(values, item.in(d)) {
			return false
		}
	}
	return true
}

// billed identifies what costs are of. The runs on an endpoint have its ID, and another kind.
type billed struct{ resource, kind string }

func billedOf(i *Item) billed { return billed{i.Resource, i.Kind} }

// rateOf identifies a resource at a rate.
type rateOf struct {
	billed
	rate int64
}

// factsOf returns the latest known facts of each resource, without its owner, and the latest terms of each resource at each of its rates.
// After the first hour of a resource, more facts are known than during it.
func factsOf(rows []Rollup) (facts map[billed]Item, terms map[rateOf]Terms) {
	slices.SortFunc(rows, func(a, b Rollup) int { // there are many rows: most comparisons end early
		if order := a.Start.Compare(b.Start); order != 0 {
			return order
		}
		if order := strings.Compare(a.Item.Resource, b.Item.Resource); order != 0 {
			return order
		}
		return cmp.Or(a.Item.compare(&b.Item), cmp.Compare(a.Item.Name, b.Item.Name), cmp.Compare(a.Item.Decision, b.Item.Decision))
	})
	facts, terms = make(map[billed]Item), make(map[rateOf]Terms)
	for _, r := range rows {
		id := billedOf(&r.Item)
		f, next := facts[id], r.Item
		next.Owner, next.Terms = Owner{}, Terms{}
		next.Name, next.GPU = cmp.Or(next.Name, f.Name), cmp.Or(next.GPU, f.GPU)
		next.DataCenter, next.Decision, next.Labels = cmp.Or(next.DataCenter, f.DataCenter), cmp.Or(next.Decision, f.Decision),
			cmp.Or(next.Labels, f.Labels)
		facts[id] = next
		at := rateOf{id, r.Item.Rate}
		terms[at] = Terms{r.Item.Rate, cmp.Or(r.Item.List, terms[at].List), cmp.Or(r.Item.GB, terms[at].GB)}
	}
	return facts, terms
}

// End returns the end of the bucket that began at start, within the range of the query.
func (q *Query) End(start time.Time) time.Time {
	end := q.To.UTC()
	switch q.Bucket {
	case Hourly, Daily:
		end = start.Add(q.Bucket.Length())
	case Monthly:
		end = start.AddDate(0, 1, 0)
	case Total:
	}
	if end.After(q.To) {
		return q.To.UTC()
	}
	return end
}
