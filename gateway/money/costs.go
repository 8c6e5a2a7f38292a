package money

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/tenants"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// recent is how far back costs are asked for where nothing is said.
const recent = 30

// query reads one as the admin API has it.
func query(q *admin.CostQuery, now time.Time) (*spend.Query, error) {
	tomorrow := spend.Daily.Start(now).AddDate(0, 0, 1)
	out := &spend.Query{
		From: q.From, To: q.To, Bucket: spend.Unit(cmp.Or(q.Bucket, string(spend.Daily))), Where: make(map[spend.Dimension][]string),
		Rates: q.Rates,
	}
	if out.To.IsZero() || out.To.After(tomorrow) {
		out.To = tomorrow
	}
	if out.From.IsZero() {
		out.From = spend.Daily.Start(out.To.Add(-time.Second)).AddDate(0, 0, 1-recent)
	}
	dimensions := spend.Dimension.Values("")
	for _, name := range q.By {
		d := spend.Dimension(name)
		if label, ok := d.Label(); !slices.Contains(dimensions, d) && (!ok || label == "") {
			return nil, row.Bad("by", "%q: expected team, key, kind, resource, gpu, dc or label:NAME", name)
		}
		out.By = append(out.By, d)
	}
	for name, values := range q.Where {
		out.Where[spend.Dimension(name)] = values
	}
	return out, nil
}

// History implements admin.Spend. It includes the costs up to now.
func (l Rows) History(ctx context.Context, org string, q admin.CostQuery) (*admin.Costs, error) {
	if _, err := l.check(org); err != nil {
		return nil, err
	}
	now := l.m.deps.Now()
	asked, err := query(&q, now)
	if err != nil {
		return nil, err
	}
	history := l.m.Books.History
	if err := history.Roll(ctx, org); err != nil {
		return nil, err
	}
	rows, err := history.Ask(ctx, org, asked, now)
	if errors.Is(err, spend.ErrRange) {
		return nil, row.BadRequestError{Reason: strings.TrimPrefix(err.Error(), "spend: ")}
	}
	if err != nil {
		return nil, err
	}
	out := &admin.Costs{From: asked.From.UTC(), To: asked.To.UTC(), Rows: make([]admin.Cost, len(rows))}
	total := int64(0)
	for i, r := range rows {
		total += r.Micro
		out.Rows[i] = admin.Cost{
			Start: r.Start, End: asked.End(r.Start), Team: r.Item.Team, Key: r.Item.Key, Kind: r.Item.Kind, Resource: r.Item.Resource,
			Name: r.Item.Name, GPU: r.Item.GPU, DataCenter: r.Item.DataCenter, Decision: r.Item.Decision, Labels: r.Item.Labels.Map(), USD: catalog.Money(r.Micro).String(),
		}
		if t := r.Item.Terms; t.Rate > 0 {
			hours := float64(r.Micro) / float64(t.Rate)
			out.Rows[i].PerHour, out.Rows[i].Hours, out.Rows[i].GB = catalog.Money(t.Rate).String(), strconv.FormatFloat(hours, 'f', 6, 64), t.GB
			if t.List > 0 {
				out.Rows[i].ListPerHour, out.Rows[i].ListUSD = catalog.Money(t.List).String(), catalog.Money(math.Round(hours*float64(t.List))).String()
			}
		}
	}
	out.Total = catalog.Money(total).String()
	return out, nil
}

// Forecast implements admin.Spend.
func (l Rows) Forecast(ctx context.Context, org string) (*admin.Forecasts, error) {
	o, err := l.check(org)
	if err != nil {
		return nil, err
	}
	history := l.m.Books.History
	if err := history.Roll(ctx, org); err != nil {
		return nil, err
	}
	state, err := l.m.Ledger.Store.Show(ctx, org)
	if err != nil {
		return nil, err
	}
	outlooks, err := history.Outlooks(ctx, org, tenants.Plan(o), &state)
	if err != nil {
		return nil, err
	}
	usd := func(n int64) string { return catalog.Money(n).String() }
	out := &admin.Forecasts{At: state.Now.UTC(), Scopes: make([]admin.Forecast, len(outlooks))}
	for i, o := range outlooks {
		periods := slices.DeleteFunc(o.Ceilings, func(c spend.Fullness) bool { return !spend.Accrues(c.Index) })
		out.Scopes[i] = admin.Forecast{
			Scope: o.Scope.String(), PerHour: usd(o.Burn), Today: usd(o.Today), ThisMonth: usd(o.ThisMonth), Days: o.Days, Budgets: budgetsOf(periods),
			Day:   admin.Estimate{Low: usd(o.Day.Low), Expected: usd(o.Day.Expected), High: usd(o.Day.High)},
			Month: admin.Estimate{Low: usd(o.Month.Low), Expected: usd(o.Month.Expected), High: usd(o.Month.High)},
		}
	}
	return out, nil
}
