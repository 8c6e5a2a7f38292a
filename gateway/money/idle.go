package money

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// IdleList lists resources that cost money and did not work at the last look; At is nil if there
// was none.
type IdleList struct {
	At        *time.Time     `json:"at"`
	Resources []IdleResource `json:"resources"`
}

// IdleResource is one of them. Without a team and a key, it is the organisation's.
type IdleResource struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
	Team string `json:"team,omitempty"`
	Key  string `json:"key,omitempty"`
	Idle
}

// Idle says why a resource is idle.
type Idle struct {
	// Reason is unused, no_jobs, stopped or unmounted.
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
	// PerMonth is its cost in a month as it stands, USD.
	PerMonth string `json:"perMonth"`
	// Snoozed is until when its owner keeps it, StopAt when it will be stopped.
	Kept   *time.Time `json:"kept,omitempty"`
	StopAt *time.Time `json:"stopAt,omitempty"`
}

// IdleCost is the cost of an organisation's idle resources, in USD a month.
type IdleCost struct {
	Org       string `json:"org"`
	Resources int    `json:"resources"`
	PerMonth  string `json:"perMonth"`
}

// Sum returns the cost of the listed resources of a team, or of all teams for "". It is nil without any.
func (l *IdleList) Sum(org, team string) *IdleCost {
	sum, n := 0.0, 0
	for i := range l.Resources {
		if r := &l.Resources[i]; team == "" || r.Team == team {
			sum, n = sum+row.Decimal(r.PerMonth), n+1
		}
	}
	if n == 0 {
		return nil
	}
	return &IdleCost{org, n, strconv.FormatFloat(sum, 'f', 2, 64)}
}

// Snoozed says until when a resource is left alone; nil ends that.
type Snoozed struct {
	Resource string     `json:"resource"`
	Until    *time.Time `json:"until"`
}

func (m *Money) idleRows() []row.Row {
	return []row.Row{
		{
			Pattern: "GET /admin/spend/idle", Summary: "Resources that cost money and do not work", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(m.idle),
			Commands: []row.Command{{Use: "spend idle ORG", Short: "Show resources that cost money and do not work, with owner, beginning, and cost a month", Example: "tollgate spend idle acme"}},
		},
		{
			Pattern: "POST /admin/spend/keep", Summary: "Leave an idle resource alone", Role: row.Operator, About: row.OfOrg, Changes: true, Ask: row.Do(m.snooze),
			Commands: []row.Command{{Use: "spend keep ORG ID", Short: "Leave a resource alone for a time although it is idle", Example: "tollgate spend keep acme k2n5x8 --for 24h", Defaults: map[string]string{"for": "24h"}}},
		},
	}
}

func (m *Money) idle(ctx context.Context, _ row.Scope, p row.Scoped) (*IdleList, error) {
	return m.Idle(ctx, string(p.Org))
}

// Idle lists the idle resources of an organisation. The errors are those of [Money.Show], and a row.BadRequestError for an organisation that does
// not look for them.
func (m *Money) Idle(ctx context.Context, org string) (*IdleList, error) {
	o, err := m.check(org)
	if err != nil {
		return nil, err
	}
	if o.Idle.For == 0 {
		return nil, row.BadRequestError{Reason: "organisation " + org + " does not look for idle resources: idle.for is not set"}
	}
	noticed, err := m.Notices.Noticed(ctx, org)
	if err != nil {
		return nil, err
	}
	at, list, err := o.Idle.List(noticed)
	if err != nil {
		return nil, err
	}
	state, err := m.Ledger.Store.Show(ctx, org)
	if err != nil {
		return nil, err
	}
	out := &IdleList{At: timeOf(at), Resources: []IdleResource{}}
	for _, r := range list {
		i := slices.IndexFunc(state.Resources, func(known ledger.Record) bool { return known.ID == r.ID })
		if i < 0 {
			continue // it has gone since
		}
		known := &state.Resources[i]
		out.Resources = append(out.Resources, IdleResource{
			ID: r.ID, Kind: r.Kind, Name: r.Name, Team: known.Owner.Team, Key: known.Owner.Key,
			Idle: Idle{Reason: string(r.Reason), Since: r.Since.UTC(), PerMonth: perMonth(r.Burn), Kept: timeOf(r.SnoozedUntil), StopAt: timeOf(r.StopAt)},
		})
	}
	return out, nil
}

// timeOf is nil for the zero time.
func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// snoozing is a resource to be left alone.
type snoozing struct {
	row.Scoped

	ID  string   `query:"id,required" doc:"id of a resource"`
	For row.Span `query:"for,required" doc:"how long, such as 24h, at most 30d; 0s ends it"`
}

// snooze leaves a resource alone for a time although it is idle; 0 ends that.
func (m *Money) snooze(ctx context.Context, _ row.Scope, p snoozing) (*Snoozed, error) {
	org, resource, d := string(p.Org), p.ID, time.Duration(p.For)
	if _, err := m.check(org); err != nil {
		return nil, err
	}
	if d < 0 || d > ledger.MaxSnooze {
		return nil, row.BadRequestError{Reason: "name a resource, and a duration of at most " + ledger.MaxSnooze.String()}
	}
	until, err := m.Keeper.Snooze(ctx, org, resource, d, func(*ledger.Record) error { return nil })
	if errors.Is(err, ledger.ErrNoResource) {
		return nil, row.BadRequestError{Reason: "organisation " + org + " has nothing that costs money with the id \"" + resource + "\""}
	}
	if err != nil {
		return nil, err
	}
	m.deps.Logger.InfoContext(ctx, "a resource is kept although it is idle", "org", org, "resource", resource, "until", until)
	return &Snoozed{Resource: resource, Until: timeOf(until)}, nil
}

// perMonth is the cost of a rate in a month, USD.
func perMonth(burn int64) string { return catalog.Monthly(catalog.Money(burn)).String() }
