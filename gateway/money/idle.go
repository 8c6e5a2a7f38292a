package money

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// IdleList lists the resources that cost money without doing work, as of the latest reconciliation pass. At is the time of that pass, or
// nil before the first pass.
type IdleList struct {
	At        *time.Time     `json:"at"`
	Resources []IdleResource `json:"resources"`
	// Minutes is the time without work after which a running resource is idle. Action is the action that the gateway takes on idle resources.
	Minutes int64         `json:"minutes"`
	Action  ledger.Action `json:"action"`
}

// IdleResource is a resource that costs money without doing work. Without a team and a key it belongs to the organisation.
type IdleResource struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
	Team string `json:"team,omitempty"`
	Key  string `json:"key,omitempty"`
	Idle
}

// Idle describes why and since when a resource is idle.
type Idle struct {
	// Reason is unused, no_jobs, inactive, stopped or unmounted.
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
	// PerMonth is the current monthly cost of the resource, in USD.
	PerMonth string `json:"perMonth"`
	// Cost is the cost since Since at the current rate, in USD.
	Cost string `json:"cost"`
	// SnoozedUntil is the end of the resource's snooze (see [Snooze]), and StopAt the time of its planned stop.
	SnoozedUntil *time.Time `json:"snoozedUntil,omitempty"`
	StopAt       *time.Time `json:"stopAt,omitempty"`
}

// IdleCost is the monthly cost of an organisation's idle resources without snoozed resources, in USD.
type IdleCost struct {
	Org       string `json:"org"`
	Resources int    `json:"resources"`
	PerMonth  string `json:"perMonth"`
}

// Sum returns the cost of the listed resources of a team, or of all teams if team is "", without snoozed resources. It returns nil if there
// are no such resources.
func (l *IdleList) Sum(org, team string) *IdleCost {
	sum, n := 0.0, 0
	for i := range l.Resources {
		if r := &l.Resources[i]; r.SnoozedUntil == nil && (team == "" || r.Team == team) {
			sum, n = sum+adminapi.Decimal(r.PerMonth), n+1
		}
	}
	if n == 0 {
		return nil
	}
	return &IdleCost{org, n, strconv.FormatFloat(sum, 'f', 2, 64)}
}

// Snoozed is the response to a snooze. Until is the end of the snooze, or nil if the snooze was ended.
type Snoozed struct {
	Resource string     `json:"resource"`
	Until    *time.Time `json:"until"`
}

func (m *Money) idleRows() []adminapi.Endpoint {
	return []adminapi.Endpoint{
		{
			Pattern: "GET /admin/spend/idle", Summary: "Idle resources", AuditsReads: true, Role: adminapi.Viewer, Subject: adminapi.SubjectOrg,
			Handler: adminapi.HandlerFor(m.idle), Commands: []adminapi.Command{
				{Use: "spend idle ORG", Short: "List idle resources with owner, idle time and monthly cost", Example: "tollgate spend idle acme"},
			},
		},
		{
			Pattern: "POST /admin/spend/snooze", Summary: "Snooze an idle resource", Role: adminapi.Operator, Subject: adminapi.SubjectOrg,
			Mutates: true, Handler: adminapi.HandlerFor(m.snooze),
			Commands: []adminapi.Command{{
				Use: "spend snooze ORG ID", Short: "Suspend the automatic stop of an idle resource and the alerts about it",
				Example: "tollgate spend snooze acme k2n5x8 --for 24h", Defaults: map[string]string{"for": "24h"},
			}},
		},
	}
}

func (m *Money) idle(ctx context.Context, _ adminapi.Principal, p adminapi.OrgParam) (*IdleList, error) {
	return m.Idle(ctx, string(p.Org))
}

// Idle lists the idle resources of an organisation. It returns an adminapi.BadRequestError if idle detection is off for the organisation.
// Its other errors are the errors of [Money.Show].
func (m *Money) Idle(ctx context.Context, org string) (*IdleList, error) {
	o, err := m.check(org)
	if err != nil {
		return nil, err
	}
	if o.Idle.For == 0 {
		return nil, adminapi.BadRequestError{Reason: "organisation " + org + ": idle detection is off; to turn it on, set 'idle.for'"}
	}
	noticed, err := m.Notices.Noticed(ctx, org)
	if err != nil {
		return nil, err
	}
	at, list, listErr := o.Idle.List(noticed)
	state, err := m.Ledger.Shared(ctx, org)
	if err := errors.Join(listErr, err); err != nil {
		return nil, err
	}
	owners := make(map[string]ledger.Owner, len(state.Resources))
	for i := range state.Resources {
		owners[state.Resources[i].ID] = state.Resources[i].Owner
	}
	out := &IdleList{
		At: timeOf(at), Resources: []IdleResource{}, Minutes: int64(o.Idle.For.Minutes()),
		Action: cmp.Or(o.Idle.Action, ledger.ActionList),
	}
	for _, r := range list {
		owner, exists := owners[r.ID]
		if !exists {
			continue
		}
		out.Resources = append(out.Resources, IdleResource{
			ID: r.ID, Kind: r.Kind, Name: r.Name, Team: owner.Team, Key: owner.Key,
			Idle: Idle{
				Reason: string(r.Reason), Since: r.Since.UTC(), PerMonth: perMonth(r.Burn),
				Cost: usd(int64(m.deps.Now().Sub(r.Since).Hours() * float64(r.Burn))), SnoozedUntil: timeOf(r.SnoozedUntil), StopAt: timeOf(r.StopAt),
			},
		})
	}
	return out, nil
}

// timeOf returns nil for the zero time.
func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// snoozing holds the parameters of a snooze.
type snoozing struct {
	adminapi.OrgParam

	ID  string            `query:"id,required" doc:"id of the resource"`
	For adminapi.Duration `query:"for,required" doc:"duration of the snooze, such as 24h, at most 30d; 0s ends the snooze"`
}

// snooze suppresses the idle handling of a resource for a time; 0 ends the snooze.
func (m *Money) snooze(ctx context.Context, _ adminapi.Principal, p snoozing) (*Snoozed, error) {
	org, resource, d := string(p.Org), p.ID, time.Duration(p.For)
	if _, err := m.check(org); err != nil {
		return nil, err
	}
	if d < 0 || d > ledger.MaxSnooze {
		return nil, adminapi.BadRequestError{Reason: "the parameter 'for' must be a duration of at most " + ledger.MaxSnooze.String()}
	}
	until, err := m.Snoozer.Snooze(ctx, org, resource, d, func(*ledger.Record) error { return nil })
	if errors.Is(err, ledger.ErrNoResource) {
		return nil, adminapi.BadRequestError{Reason: "organisation " + org + " has no billable resource with the id " + strconv.Quote(resource)}
	}
	if err != nil {
		return nil, err
	}
	m.deps.Logger.InfoContext(ctx, "resource snoozed", "org", org, "resource", resource, "until", until)
	return &Snoozed{Resource: resource, Until: timeOf(until)}, nil
}

// perMonth returns the monthly cost of an hourly rate, in USD.
func perMonth(burn int64) string { return catalog.Monthly(catalog.Money(burn)).String() }
