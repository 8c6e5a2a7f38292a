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

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// Costs are the costs of resources in a time range, by bucket and group.
type Costs struct {
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	Rows  []Cost    `json:"rows"`
	Total string    `json:"total"`
}

// CostGroup identifies a group of costs. Only the fields by which costs are grouped are set. Grouping by resource also sets Name, GPU and
// DataCenter.
type CostGroup struct {
	Team       string `json:"team,omitempty"`
	Key        string `json:"key,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Resource   string `json:"resource,omitempty"`
	Name       string `json:"name,omitempty"`
	GPU        string `json:"gpu,omitempty"`
	DataCenter string `json:"dc,omitempty"`
	// Labels are the labels by which costs are grouped, or all labels of the resource if costs are grouped by resource.
	Labels map[string]string `json:"labels,omitempty"`
}

// Cost is the cost of one group in one time bucket, in USD.
type Cost struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	CostGroup
	// Decision is the decision ID of the call that created the resource, if costs are grouped by resource.
	Decision string `json:"decision,omitempty"`
	USD      string `json:"usd"`
	// PerHour is the rate in USD, and Hours the time at that rate. Both are set only if costs are separated by rate and the rate is known;
	// corrections by bills and one-time costs have no rate.
	PerHour string `json:"perHour,omitempty"`
	Hours   string `json:"hours,omitempty"`
	// ListPerHour is the list price, and ListUSD the cost at that price. Both are set only if a different price was agreed.
	ListPerHour string `json:"listPerHour,omitempty"`
	ListUSD     string `json:"listUsd,omitempty"`
	// GB is the size of a network volume.
	GB int64 `json:"gb,omitempty"`
}

// recent is the default length of a query's time range, in days.
const recent = 30

// chosen selects the costs to return.
type chosen struct {
	adminapi.OrgParam

	From     adminapi.Timestamp  `query:"from" doc:"first day or hour of the range; default: 30 days before the end"`
	To       adminapi.Timestamp  `query:"to" doc:"first day or hour after the range; default: the end of today"`
	Team     []adminapi.PastTeam `query:"team" doc:"only these teams"`
	Key      []string            `query:"key" doc:"only these keys"`
	Kind     []string            `query:"kind" doc:"only these kinds of resources"`
	Resource []string            `query:"resource" doc:"only these resources"`
	GPU      []string            `query:"gpu" doc:"only resources of these GPU or CPU types"`
	DC       []string            `query:"dc" doc:"only these data centres"`
	Label    []string            `query:"label" doc:"only resources with this label: name=value, or name= for resources without the label"`
}

// priced adds the parameter for the time range of each row.
type priced struct {
	chosen

	Bucket string `query:"bucket" oneof:"hour,day,month,total" default:"day" doc:"time range of each row"`
}

// summed holds the parameters for costs summed by dimensions.
type summed struct {
	priced

	By    []string `query:"by" doc:"fields to group by, separated by commas: team, key, kind, resource, gpu, dc, label:NAME"`
	Limit int      `query:"limit" doc:"maximum number of rows; default: all"`
}

// query returns the query of the history. By default it covers the 30 days that end with today.
func (p *chosen) query(now time.Time, bucket string) (*ledger.Query, error) {
	tomorrow := ledger.Daily.Start(now).AddDate(0, 0, 1)
	q := &ledger.Query{From: time.Time(p.From), To: time.Time(p.To), Bucket: ledger.Unit(bucket), Where: make(map[ledger.Dimension][]string)}
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
		ledger.ByTeam: teams, ledger.ByKey: p.Key, ledger.ByKind: p.Kind, ledger.ByResource: p.Resource, ledger.ByGPU: p.GPU,
		ledger.ByDataCenter: p.DC,
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

// by returns the dimensions to group by.
func (p *summed) by() (list []ledger.Dimension, err error) {
	for _, name := range strings.FieldsFunc(strings.Join(p.By, ","), func(r rune) bool { return r == ',' }) {
		d := ledger.Dimension(name)
		if label, ok := d.Label(); !slices.Contains(d.Values(), d) && (!ok || label == "") {
			return nil, adminapi.BadParam("by", "must be team, key, kind, resource, gpu, dc or label:NAME, got %q", name)
		}
		list = append(list, d)
	}
	return list, nil
}

// cutLabel splits a text of the form name=value.
func cutLabel(label string) (name, value string, err error) {
	name, value, ok := strings.Cut(label, "=")
	if !ok || name == "" {
		return "", "", adminapi.BadParam("label", "must be name=value, or name= for resources without the label, got %q", label)
	}
	return name, value, nil
}

func (m *Money) costRows() []adminapi.Endpoint {
	return []adminapi.Endpoint{
		{
			Pattern: "GET /admin/spend/history", Summary: "Costs of resources", AuditsReads: true, Role: adminapi.Viewer,
			Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(m.costs),
			Commands: []adminapi.Command{
				{
					Use: "spend history ORG", Short: "Show costs by time and group",
					Example: "tollgate spend history acme --by team,gpu --bucket day --from 2026-11-01", Defaults: map[string]string{"by": "team"},
				},
				{
					Use: "spend top ORG", Short: "Show the highest costs", Example: "tollgate spend top acme --by resource,team --limit 5",
					Defaults: map[string]string{"by": "resource,team", "limit": "10"}, Fixed: map[string]string{"bucket": "total"},
				},
			},
		},
		{
			Pattern: "GET /admin/spend/forecast", Summary: "Cost forecast of each scope", AuditsReads: true, Role: adminapi.Viewer,
			Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(m.forecast),
			Commands: []adminapi.Command{{
				Use: "spend forecast ORG", Short: "Forecast the cost until the end of the day and the end of the month",
				Example: "tollgate spend forecast acme --team research",
			}},
		},
		{
			Pattern: "GET /admin/spend/export", Summary: "Resource costs in the FOCUS 1.2 format", AuditsReads: true,
			Role: adminapi.Viewer, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(m.export), ContentType: "text/csv; charset=utf-8",
			Commands: []adminapi.Command{{
				Use: "spend export ORG", Short: "Export resource costs as CSV with the columns of FOCUS 1.2",
				Example: "tollgate spend export acme --from 2026-11-01 --to 2026-12-01 > november.csv",
			}},
		},
	}
}

// history returns costs. It accepts a team that is no longer configured if the team has costs in the queried time.
func (m *Money) history(ctx context.Context, s adminapi.Principal, p *chosen, q *ledger.Query) (*Costs, error) {
	for _, t := range p.Team {
		missing := s.TeamProblem(string(p.Org), string(t))
		if missing == "" {
			continue
		}
		past, err := m.Costs(ctx, string(p.Org),
			&ledger.Query{From: q.From, To: q.To, Bucket: ledger.Total, Where: map[ledger.Dimension][]string{ledger.ByTeam: {string(t)}}})
		if err != nil {
			return nil, err
		}
		if len(past.Rows) == 0 {
			return nil, adminapi.FaultsError{{Parameter: "team", Detail: missing, Missing: true}}
		}
	}
	return m.Costs(ctx, string(p.Org), q)
}

func (m *Money) costs(ctx context.Context, s adminapi.Principal, p summed) (*Costs, error) {
	q, err := p.query(m.deps.Now(), p.Bucket)
	if err != nil {
		return nil, err
	}
	if q.By, err = p.by(); err != nil {
		return nil, err
	}
	costs, err := m.history(ctx, s, &p.chosen, q)
	if err == nil && p.Limit > 0 {
		costs.Rows = costs.Rows[:min(len(costs.Rows), p.Limit)]
	}
	return costs, err
}

// export writes costs in the columns of FOCUS 1.2.
func (m *Money) export(ctx context.Context, s adminapi.Principal, p priced) (adminapi.Writer, error) {
	q, err := p.query(m.deps.Now(), p.Bucket)
	if err != nil {
		return nil, err
	}
	q.By, q.Rates = ledger.Dimension.Values(""), true
	costs, err := m.history(ctx, s, &p.chosen, q)
	if err != nil {
		return nil, err
	}
	return func(w io.Writer) error { return WriteFOCUS(w, string(p.Org), costs.Rows) }, nil
}

// Costs returns the costs of an organisation, including the costs up to now. It returns an adminapi.BadRequestError if the costs of the
// queried range are no longer retained. Its other errors are the errors of [Money.Show].
func (m *Money) Costs(ctx context.Context, org string, q *ledger.Query) (*Costs, error) {
	if _, err := m.check(org); err != nil {
		return nil, err
	}
	if tomorrow := ledger.Daily.Start(m.deps.Now()).AddDate(0, 0, 1); q.To.After(tomorrow) {
		known := *q
		known.To = tomorrow
		q = &known
	}
	rows, err := m.Loop.History.Query(ctx, org, q, m.deps.Now())
	if errors.Is(err, ledger.ErrRange) {
		return nil, adminapi.BadRequestError{Reason: strings.TrimPrefix(err.Error(), "ledger: ")}
	}
	if err != nil {
		return nil, err
	}
	out := &Costs{From: q.From.UTC(), To: q.To.UTC(), Rows: make([]Cost, len(rows))}
	total := int64(0)
	for i, r := range rows {
		total += r.Micro
		out.Rows[i] = Cost{
			Start: r.Start, End: q.End(r.Start), Decision: r.Item.Decision, USD: catalog.Money(r.Micro).String(), CostGroup: CostGroup{
				Team: r.Item.Team, Key: r.Item.Key, Kind: r.Item.Kind, Resource: r.Item.Resource, Name: r.Item.Name, GPU: r.Item.GPU,
				DataCenter: r.Item.DataCenter, Labels: r.Item.Labels.Map(),
			},
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
