package money

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// Costs are the costs of resources in a range of time, by bucket and group.
type Costs struct {
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	Rows  []Cost    `json:"rows"`
	Total string    `json:"total"`
}

// Cost is one bucket of one group, in USD. Of its members only those are set that the
// costs are grouped by; with the resource come its name, machine, place and the
// decision on the call that made it.
type Cost struct {
	Start      time.Time `json:"start"`
	End        time.Time `json:"end"`
	Team       string    `json:"team,omitempty"`
	Key        string    `json:"key,omitempty"`
	Kind       string    `json:"kind,omitempty"`
	Resource   string    `json:"resource,omitempty"`
	Name       string    `json:"name,omitempty"`
	GPU        string    `json:"gpu,omitempty"`
	DataCenter string    `json:"dc,omitempty"`
	Decision   string    `json:"decision,omitempty"`
	// Labels are those that the costs are grouped by, and with the resource all.
	Labels map[string]string `json:"labels,omitempty"`
	USD    string            `json:"usd"`
	// PerHour is the rate, in USD, and Hours its duration, where rates are separated
	// and this one is known; corrections by bills and one-time costs have none.
	PerHour string `json:"perHour,omitempty"`
	Hours   string `json:"hours,omitempty"`
	// ListPerHour is the rate on the platform's list, and ListUSD the costs at it, where
	// something else was agreed.
	ListPerHour string `json:"listPerHour,omitempty"`
	ListUSD     string `json:"listUsd,omitempty"`
	// GB is the size of a network volume.
	GB int64 `json:"gb,omitempty"`
}

// recent is the number of days whose costs are returned where no time is asked for.
const recent = 30

// priced says which costs are shown.
type priced struct {
	row.Scoped

	From     row.Moment     `query:"from" doc:"first day or hour; absent is 30 days before the end"`
	To       row.Moment     `query:"to" doc:"day or hour after the last; absent is the end of today"`
	Bucket   string         `query:"bucket" oneof:"hour,day,month,total" default:"day" doc:"time that a row sums up"`
	Team     []row.PastTeam `query:"team" doc:"only these teams"`
	Key      []string       `query:"key" doc:"only these keys"`
	Kind     []string       `query:"kind" doc:"only these kinds of resources"`
	Resource []string       `query:"resource" doc:"only these resources"`
	GPU      []string       `query:"gpu" doc:"only these types of GPU or CPU"`
	DC       []string       `query:"dc" doc:"only these data centres"`
	Label    []string       `query:"label" doc:"only resources with this label, name=value, or name= for those without the name"`
}

// summed costs are added up by dimensions.
type summed struct {
	priced

	By    []string `query:"by" doc:"fields to group by, with commas between: team, key, kind, resource, gpu, dc, label:NAME"`
	Limit int      `query:"limit" doc:"how many rows at most; absent is all"`
}

// query returns the query of the history, which has costs up to the end of today, and those of 30 days unless something else is asked for.
func (p *priced) query(now time.Time) (*ledger.Query, error) {
	tomorrow := ledger.Daily.Start(now).AddDate(0, 0, 1)
	q := &ledger.Query{From: time.Time(p.From), To: time.Time(p.To), Bucket: ledger.Unit(p.Bucket), Where: make(map[ledger.Dimension][]string)}
	if q.To.IsZero() || q.To.After(tomorrow) {
		q.To = tomorrow
	}
	if q.From.IsZero() {
		q.From = ledger.Daily.Start(q.To.Add(-time.Second)).AddDate(0, 0, 1-recent)
	}
	var teams []string
	for _, t := range p.Team {
		teams = append(teams, string(t))
	}
	for of, values := range map[ledger.Dimension][]string{
		ledger.ByTeam: teams, ledger.ByKey: p.Key, ledger.ByKind: p.Kind, ledger.ByResource: p.Resource, ledger.ByGPU: p.GPU, ledger.ByDataCenter: p.DC,
	} {
		if len(values) > 0 {
			q.Where[of] = values
		}
	}
	for _, label := range p.Label {
		name, value, err := cutLabel(label)
		if err != nil {
			return nil, err
		}
		of := ledger.Dimension("label:" + name)
		q.Where[of] = append(q.Where[of], value)
	}
	return q, nil
}

// by returns the dimensions that costs are grouped by.
func (p *summed) by() (list []ledger.Dimension, err error) {
	for _, name := range strings.FieldsFunc(strings.Join(p.By, ","), func(r rune) bool { return r == ',' }) {
		d := ledger.Dimension(name)
		if label, ok := d.Label(); !slices.Contains(d.Values(), d) && (!ok || label == "") {
			return nil, row.Bad("by", "%q: expected team, key, kind, resource, gpu, dc or label:NAME", name)
		}
		list = append(list, d)
	}
	return list, nil
}

// cutLabel reads name=value.
func cutLabel(label string) (name, value string, err error) {
	name, value, ok := strings.Cut(label, "=")
	if !ok || name == "" {
		return "", "", row.Bad("label", "%q: expected name=value, or name= for resources without it", label)
	}
	return name, value, nil
}

func (m *Money) costRows() []row.Row {
	return []row.Row{
		{
			Pattern: "GET /admin/spend/history", Summary: "The costs of resources", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(m.costs),
			Commands: []row.Command{
				{Use: "spend history ORG", Short: "Show the costs of resources, by time and group", Example: "tollgate spend history acme --by team,gpu --bucket day --from 2026-11-01", Defaults: map[string]string{"by": "team"}},
				{Use: "spend top ORG", Short: "Show the highest costs", Example: "tollgate spend top acme --by resource,team --limit 5", Defaults: map[string]string{"by": "resource,team", "limit": "10"}, Fixed: map[string]string{"bucket": "total"}},
			},
		},
		{
			Pattern: "GET /admin/spend/forecast", Summary: "The likely spending of each scope", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(m.forecast),
			Commands: []row.Command{{Use: "spend forecast ORG", Short: "Estimate the spend by the end of the day and of the month", Example: "tollgate spend forecast acme --team research"}},
		},
		{
			Pattern: "GET /admin/spend/export", Summary: "The costs of resources, in the columns of FOCUS 1.2", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(m.export), Media: "text/csv; charset=utf-8",
			Commands: []row.Command{{Use: "spend export ORG", Short: "Write the costs of resources as CSV with the columns of FOCUS 1.2", Example: "tollgate spend export acme --from 2026-11-01 --to 2026-12-01 > november.csv"}},
		},
	}
}

// history returns costs. A team that is configured no longer is known by its costs in that time.
func (m *Money) history(ctx context.Context, s row.Scope, p *priced, q *ledger.Query) (*Costs, error) {
	for _, t := range p.Team {
		missing := s.NoTeam(string(p.Org), string(t))
		if missing == "" {
			continue
		}
		past, err := m.Costs(ctx, string(p.Org), &ledger.Query{From: q.From, To: q.To, Bucket: ledger.Total, Where: map[ledger.Dimension][]string{ledger.ByTeam: {string(t)}}})
		if err != nil {
			return nil, err
		}
		if len(past.Rows) == 0 {
			return nil, row.FaultsError{{Parameter: "team", Detail: missing, Missing: true}}
		}
	}
	return m.Costs(ctx, string(p.Org), q)
}

func (m *Money) costs(ctx context.Context, s row.Scope, p summed) (*Costs, error) {
	q, err := p.query(m.deps.Now())
	if err != nil {
		return nil, err
	}
	if q.By, err = p.by(); err != nil {
		return nil, err
	}
	costs, err := m.history(ctx, s, &p.priced, q)
	if err == nil && p.Limit > 0 {
		costs.Rows = costs.Rows[:min(len(costs.Rows), p.Limit)]
	}
	return costs, err
}

// export answers with costs in the columns of FOCUS 1.2.
func (m *Money) export(ctx context.Context, s row.Scope, p priced) (row.Writer, error) {
	q, err := p.query(m.deps.Now())
	if err != nil {
		return nil, err
	}
	q.By, q.Rates = ledger.Dimension.Values(""), true
	costs, err := m.history(ctx, s, &p, q)
	if err != nil {
		return nil, err
	}
	return func(w io.Writer) error { return WriteFOCUS(w, string(p.Org), costs.Rows) }, nil
}

// Costs returns the costs of an organisation, those up to now among them. A query for a range that is not kept is a row.BadRequestError. The
// errors are otherwise those of [Money.Show].
func (m *Money) Costs(ctx context.Context, org string, q *ledger.Query) (*Costs, error) {
	if _, err := m.check(org); err != nil {
		return nil, err
	}
	if tomorrow := ledger.Daily.Start(m.deps.Now()).AddDate(0, 0, 1); q.To.After(tomorrow) {
		known := *q
		known.To = tomorrow
		q = &known
	}
	history := m.Loop.History
	if err := history.RollUp(ctx, org); err != nil {
		return nil, err
	}
	rows, err := history.Query(ctx, org, q, m.deps.Now())
	if errors.Is(err, ledger.ErrRange) {
		return nil, row.BadRequestError{Reason: strings.TrimPrefix(err.Error(), "spend: ")}
	}
	if err != nil {
		return nil, err
	}
	out := &Costs{From: q.From.UTC(), To: q.To.UTC(), Rows: make([]Cost, len(rows))}
	total := int64(0)
	for i, r := range rows {
		total += r.Micro
		out.Rows[i] = Cost{
			Start: r.Start, End: q.End(r.Start), Team: r.Item.Team, Key: r.Item.Key, Kind: r.Item.Kind, Resource: r.Item.Resource,
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
