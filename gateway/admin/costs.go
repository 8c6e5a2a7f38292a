package admin

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
)

// CostQuery asks for the costs of resources. Times are whole hours, the zero Time is the
// default; By names dimensions, and Where keeps costs with one of the values in each.
type CostQuery struct {
	From, To time.Time
	Bucket   string
	By       []string
	Where    map[string][]string
	// Rates separates costs of different rates.
	Rates bool
}

// byLabel begins the dimensions that are labels.
const byLabel = "label:"

// Dimensions are the groupings and filters of costs, besides labels.
var dimensions = []string{"team", "key", "kind", "resource", "gpu", "dc"} //nolint:gochecknoglobals // read only

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

// Forecasts is the likely spend of an organisation's scopes.
type Forecasts struct {
	At     time.Time  `json:"at"`
	Scopes []Forecast `json:"scopes"`
}

// Forecast is that of one scope, in USD: the accrued amounts of today and this month, and
// the totals that both come to.
type Forecast struct {
	Scope     string   `json:"scope"`
	PerHour   string   `json:"perHour"`
	Today     string   `json:"today"`
	Day       Estimate `json:"day"`
	ThisMonth string   `json:"thisMonth"`
	Month     Estimate `json:"month"`
	// Days is how many whole days of history it is made from.
	Days int `json:"days"`
	// Budgets are those for accrued cost.
	Budgets []Budget `json:"budgets"`
}

// Estimate is one in USD, with the range that days have differed in.
type Estimate struct {
	Low      string `json:"low"`
	Expected string `json:"expected"`
	High     string `json:"high"`
}

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

// query returns the query of the history.
func (p *priced) query() (CostQuery, error) {
	q := CostQuery{From: time.Time(p.From), To: time.Time(p.To), Bucket: p.Bucket, Where: make(map[string][]string)}
	var teams []string
	for _, t := range p.Team {
		teams = append(teams, string(t))
	}
	for name, values := range map[string][]string{"team": teams, "key": p.Key, "kind": p.Kind, "resource": p.Resource, "gpu": p.GPU, "dc": p.DC} {
		if len(values) > 0 {
			q.Where[name] = values
		}
	}
	for _, label := range p.Label {
		name, value, err := cutLabel(label)
		if err != nil {
			return q, err
		}
		q.Where[byLabel+name] = append(q.Where[byLabel+name], value)
	}
	return q, nil
}

// cutLabel reads name=value.
func cutLabel(label string) (name, value string, err error) {
	name, value, ok := strings.Cut(label, "=")
	if !ok || name == "" {
		return "", "", row.Bad("label", "%q: expected name=value, or name= for resources without it", label)
	}
	return name, value, nil
}

func (d Deps) costRows() []row.Row {
	return []row.Row{
		{
			Pattern: "GET /admin/spend/history", Summary: "The costs of resources", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.costs),
			Commands: []row.Command{
				{Use: "spend history ORG", Short: "Show the costs of resources, by time and group", Example: "tollgate spend history acme --by team,gpu --bucket day --from 2026-11-01", Defaults: map[string]string{"by": "team"}},
				{Use: "spend top ORG", Short: "Show the highest costs", Example: "tollgate spend top acme --by resource,team --limit 5", Defaults: map[string]string{"by": "resource,team", "limit": "10"}, Fixed: map[string]string{"bucket": "total"}},
			},
		},
		{
			Pattern: "GET /admin/spend/forecast", Summary: "The likely spending of each scope", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.forecast),
			Commands: []row.Command{{Use: "spend forecast ORG", Short: "Estimate the spend by the end of the day and of the month", Example: "tollgate spend forecast acme --team research"}},
		},
		{
			Pattern: "GET /admin/spend/export", Summary: "The costs of resources, in the columns of FOCUS 1.2", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.export), Media: "text/csv; charset=utf-8",
			Commands: []row.Command{{Use: "spend export ORG", Short: "Write the costs of resources as CSV with the columns of FOCUS 1.2", Example: "tollgate spend export acme --from 2026-11-01 --to 2026-12-01 > november.csv"}},
		},
	}
}

// history returns costs. A team that is configured no longer is known by its costs in that time.
func (d Deps) history(ctx context.Context, s row.Scope, p *priced, q CostQuery) (*Costs, error) {
	for _, t := range p.Team {
		missing := s.NoTeam(string(p.Org), string(t))
		if missing == "" {
			continue
		}
		past, err := d.Spend.History(ctx, string(p.Org), CostQuery{From: q.From, To: q.To, Bucket: "total", Where: map[string][]string{"team": {string(t)}}})
		if err != nil {
			return nil, err
		}
		if len(past.Rows) == 0 {
			return nil, row.FaultsError{{Parameter: "team", Detail: missing, Missing: true}}
		}
	}
	return d.Spend.History(ctx, string(p.Org), q)
}

func (d Deps) costs(ctx context.Context, s row.Scope, p summed) (*Costs, error) {
	q, err := p.query()
	if err != nil {
		return nil, err
	}
	q.By = strings.FieldsFunc(strings.Join(p.By, ","), func(r rune) bool { return r == ',' })
	costs, err := d.history(ctx, s, &p.priced, q)
	if err == nil && p.Limit > 0 {
		costs.Rows = costs.Rows[:min(len(costs.Rows), p.Limit)]
	}
	return costs, err
}

// forecasting says of whom a forecast is made.
type forecasting struct {
	row.Scoped

	Team []row.Team `query:"team" doc:"only these teams"`
	Key  []string   `query:"key" doc:"only these keys"`
}

func (d Deps) forecast(ctx context.Context, _ row.Scope, p forecasting) (*Forecasts, error) {
	forecasts, err := d.Spend.Forecast(ctx, string(p.Org))
	if err != nil || len(p.Team)+len(p.Key) == 0 {
		return forecasts, err
	}
	forecasts.Scopes = slices.DeleteFunc(forecasts.Scopes, func(f Forecast) bool {
		kind, id, _ := strings.Cut(f.Scope, " ")
		return (kind != "team" || !slices.Contains(p.Team, row.Team(id))) && (kind != "key" || !slices.Contains(p.Key, id))
	})
	return forecasts, nil
}

// export answers with costs in the columns of FOCUS 1.2.
func (d Deps) export(ctx context.Context, s row.Scope, p priced) (row.Writer, error) {
	q, err := p.query()
	if err != nil {
		return nil, err
	}
	q.By, q.Rates = dimensions, true
	costs, err := d.history(ctx, s, &p, q)
	if err != nil {
		return nil, err
	}
	return func(w io.Writer) error { return WriteFOCUS(w, string(p.Org), costs.Rows) }, nil
}
