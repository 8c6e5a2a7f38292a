package money

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// Comparison compares the cost of groups in two periods.
type Comparison struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// PreviousFrom and PreviousTo bound the previous period, which has the same length as the range. If the range has not ended yet, the
	// previous period is shortened by the time that remains until To.
	PreviousFrom time.Time `json:"previousFrom,omitzero"`
	PreviousTo   time.Time `json:"previousTo,omitzero"`
	// Unknown explains why the previous period is missing.
	Unknown string         `json:"unknown,omitempty"`
	Rows    []ComparedCost `json:"rows"`
	// All is the number of groups.
	All      int    `json:"all"`
	Total    string `json:"total"`
	Previous string `json:"previous,omitempty"`
	// Next is the cursor of the next page. It is absent on the last page.
	Next string `json:"next,omitempty"`
}

// ComparedCost is the cost of a group in two periods, in USD.
type ComparedCost struct {
	CostGroup

	USD      string `json:"usd"`
	Previous string `json:"previous"`
	// Difference is USD minus Previous.
	Difference string `json:"difference"`
	// Percent is the group's share of the total.
	Percent float64 `json:"percent"`

	micro, previous int64
}

// comparing holds the parameters of a comparison.
type comparing struct {
	chosen
	adminapi.Paging

	By   []string `query:"by" doc:"fields to group by, separated by commas: team, key, kind, resource, gpu, dc, label:NAME"`
	Sort string   `query:"sort" oneof:"usd,previous,difference,group" default:"usd" doc:"sort order: highest cost, highest cost in the previous period or highest increase first, or by group. If amounts change between two pages, only the order by group lists each group exactly once"`
}

// rank returns the position of a group in the requested order.
func (p *comparing) rank(c *ComparedCost) string {
	switch p.Sort {
	case "previous":
		return adminapi.Descending(c.previous) + adminapi.Descending(c.micro) + c.id()
	case "difference":
		return adminapi.Descending(c.micro-c.previous) + adminapi.Descending(c.micro) + c.id()
	case "group":
		return c.id()
	}
	return adminapi.Descending(c.micro) + c.id()
}

func (m *Money) compareRow() adminapi.Endpoint {
	return adminapi.Endpoint{
		Pattern: "GET /admin/spend/compare", Summary: "Costs by group, compared with the previous period",
		AuditsReads: true, Role: adminapi.Viewer, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(m.compare),
		Commands: []adminapi.Command{{
			Use: "spend compare ORG", Short: "Compare costs with the previous period",
			Example:  "tollgate spend compare acme --by team --from 2026-11-01\ntollgate spend compare acme --by resource --sort difference --limit 10",
			Defaults: map[string]string{"by": "team"},
		}},
	}
}

// before returns the query for the previous period. This period starts earlier than q by the length of the range, which is rounded up to
// whole days if it exceeds two days, so that the same hours of the day are compared. If q has not ended at the time now, the previous
// period is shortened by the time that remains.
func before(q *ledger.Query, now time.Time) *ledger.Query {
	p, length := *q, q.To.Sub(q.From)
	if day := ledger.Daily.Length(); length > 2*day {
		length = (length + day - 1) / day * day
	}
	end := ledger.Hourly.Start(now).Add(time.Hour)
	if end.After(q.To) {
		end = q.To
	}
	p.From, p.To = q.From.Add(-length), end.Add(-length)
	return &p
}

func (m *Money) compare(ctx context.Context, s adminapi.Principal, p comparing) (*Comparison, error) {
	q, err := p.query(m.deps.Now(), string(ledger.Total))
	if err != nil {
		return nil, err
	}
	if q.By, err = (&summed{By: p.By}).by(); err != nil {
		return nil, err
	}
	now, err := m.history(ctx, s, &p.chosen, q)
	if err != nil {
		return nil, err
	}
	out := &Comparison{From: now.From, To: now.To, Total: now.Total}
	earlier, err := m.previous(ctx, string(p.Org), q)
	if bad, isBad := errors.AsType[adminapi.BadRequestError](err); isBad {
		out.Unknown, earlier, err = bad.Reason, new(Costs), nil
	}
	if err != nil {
		return nil, err
	}
	out.PreviousFrom, out.PreviousTo, out.Previous = earlier.From, earlier.To, earlier.Total
	list := compared(now.Rows, earlier.Rows)
	out.All = len(list)
	out.Rows, out.Next, err = adminapi.SortedPage(list, &p.Paging, p.rank)
	return out, err
}

// previous returns the costs of the period before q. If the ledger no longer retains hourly costs of this period, its start and end are
// rounded to the nearest start of a day.
func (m *Money) previous(ctx context.Context, org string, q *ledger.Query) (*Costs, error) {
	earlier, day := before(q, m.deps.Now()), ledger.Daily.Length()
	costs, err := m.Costs(ctx, org, earlier)
	if _, isBad := errors.AsType[adminapi.BadRequestError](err); isBad && q.To.Sub(q.From) >= day {
		earlier.From, earlier.To = earlier.From.Round(day), q.From.Round(day)
		return m.Costs(ctx, org, earlier)
	}
	return costs, err
}

// compared joins the costs of two periods by group.
func compared(now, earlier []Cost) []ComparedCost {
	groups, total := make(map[string]*ComparedCost), int64(0)
	of := func(c *Cost) *ComparedCost {
		g := &ComparedCost{CostGroup: c.CostGroup}
		if groups[g.id()] == nil {
			groups[g.id()] = g
		}
		return groups[g.id()]
	}
	for i := range now {
		n := micro(now[i].USD)
		of(&now[i]).micro += n
		total += n
	}
	for i := range earlier {
		of(&earlier[i]).previous += micro(earlier[i].USD)
	}
	list := make([]ComparedCost, 0, len(groups))
	for _, g := range groups {
		g.USD, g.Previous, g.Difference = usd(g.micro), usd(g.previous), usd(g.micro-g.previous)
		if total > 0 {
			g.Percent = float64(g.micro*1000/total) / 10
		}
		list = append(list, *g)
	}
	return list
}

// id identifies the group. A resource keeps its ID when its labels or its machine change.
func (c *ComparedCost) id() string {
	if c.Resource != "" {
		return strings.Join([]string{c.Team, c.Key, c.Kind, c.Resource}, "\x00")
	}
	parts := []string{c.Team, c.Key, c.Kind, c.GPU, c.DataCenter}
	for _, name := range slices.Sorted(maps.Keys(c.Labels)) {
		parts = append(parts, name, c.Labels[name])
	}
	return strings.Join(parts, "\x00")
}

// micro converts a decimal amount in USD to micro-dollars.
func micro(amount string) int64 { return int64(math.Round(adminapi.Decimal(amount) * microUSD)) }
