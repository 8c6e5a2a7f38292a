package selfservice

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/reference"
)

// Me describes a caller: its identity, its remaining rate limits and its remaining budgets.
type Me struct {
	Org  string `json:"org"`
	Team string `json:"team,omitempty"`
	Key  string `json:"key"`
	// Subject is the subject of a token or certificate.
	Subject string   `json:"subject,omitempty"`
	Roles   []string `json:"roles"`
	// Zone is the time zone of the organisation's budgets.
	Zone string `json:"zone"`
	// Until is the time when the credential expires. It is omitted for a credential that does not expire.
	Until   *time.Time        `json:"until,omitempty"`
	Limits  []reference.Limit `json:"limits"`
	Budgets []Budget          `json:"budgets"`
	// Grants limits a lead's approvals in USD. It is omitted if the caller cannot approve requests.
	Grants *Grants `json:"grants,omitempty"`
	// Approvals lists the caller's own approval requests, newest first.
	Approvals []approval.Record `json:"approvals"`
	// Unknown lists the parts of the response that could not be read.
	Unknown []string `json:"unknown,omitempty"`
}

// Budget is a budget of a caller with its forecast, as in [money.BudgetRow].
type Budget struct {
	reference.Budget

	UsedUp   string          `json:"usedUp,omitempty"`
	UsedUpAt *time.Time      `json:"usedUpAt,omitempty"`
	Forecast *money.Estimate `json:"forecast,omitempty"`
	Free     string          `json:"free,omitempty"`
}

// Grants is the highest cost of a call that a lead can approve, in USD per hour or per run.
type Grants struct {
	PerHour string `json:"perHour"`
	PerRun  string `json:"perRun"`
}

func (s *Service) me(ctx context.Context, ex *filter.Exchange) (any, error) {
	forecast := ex.Query.Get("forecast") == "true"
	if len(ex.Query) > 1 || len(ex.Query) == 1 && !forecast {
		return nil, adminapi.BadParam("query", "the only parameter is forecast=true")
	}
	c := ex.Caller
	m := &Me{
		Org: c.Org, Team: c.Team, Key: c.Key, Subject: c.Subject, Roles: c.RoleNames(), Zone: s.deps.Zone(c.Org).Location().String(),
		Limits: s.deps.Access.Limits(ctx, c, ex.Tenant), Budgets: []Budget{}, Approvals: []approval.Record{},
	}
	for _, b := range s.deps.Access.Budgets(ctx, c, ex.Tenant) {
		m.Budgets = append(m.Budgets, Budget{Budget: b})
	}
	if forecast && s.forecast(ctx, c, m.Budgets) != nil {
		m.Unknown = append(m.Unknown, "forecasts of budgets: shared store unavailable")
	}
	if !c.Until.IsZero() {
		m.Until = new(c.Until.UTC())
	}
	if g := s.grants(c); leads(c) && (g.PerHour > 0 || g.PerRun > 0) {
		m.Grants = &Grants{g.PerHour.String(), g.PerRun.String()}
	}
	list, err := s.requests(ctx, ex)
	if err != nil {
		m.Unknown = append(m.Unknown, "approvals: shared store unavailable")
	}
	m.Approvals = append(m.Approvals, slices.DeleteFunc(list, func(r approval.Record) bool { return r.Key != c.Key })...)
	return m, nil
}

// forecast adds the forecasts to a caller's budgets. If the organisation has more than 1000 budgets, only the 1000 budgets that run out
// first have forecasts.
func (s *Service) forecast(ctx context.Context, c *identity.Caller, budgets []Budget) error {
	if len(budgets) == 0 {
		return nil
	}
	list, err := adminapi.Call[money.BudgetList](ctx, s.rows, "GET /admin/spend/budgets", s.scope(c), url.Values{"org": {c.Org}, "limit": {"1000"}}, nil)
	for i := range budgets {
		b := &budgets[i]
		at := slices.IndexFunc(list.Budgets, func(x money.BudgetRow) bool { return x.Scope == b.Scope && x.Name == b.Name })
		if at >= 0 && b.Left != "" {
			x := &list.Budgets[at]
			b.UsedUp, b.UsedUpAt, b.Forecast, b.Free = x.UsedUp, x.UsedUpAt, x.Forecast, x.Free
		}
	}
	return err
}

// spend returns the costs of the caller or, for a lead, of the whole team.
func (s *Service) spend(ctx context.Context, ex *filter.Exchange) (any, error) {
	return ask[any](ctx, s, ex, "GET /admin/spend/history", ex.Query)
}

// Resource is a resource of a caller.
type Resource struct {
	money.Resource

	// Idle is omitted for a resource that is not idle or not checked.
	Idle *money.Idle `json:"idle,omitempty"`
}

// ResourceList is the list of resources in a response. Complete is copied from the ledger.
type ResourceList struct {
	Complete  bool       `json:"complete"`
	Resources []Resource `json:"resources"`
}

func (s *Service) resources(ctx context.Context, ex *filter.Exchange) (any, error) {
	l, err := ask[money.Ledger](ctx, s, ex, "GET /admin/spend", ex.Query)
	if err != nil {
		return nil, err
	}
	out := ResourceList{l.Complete, []Resource{}}
	idle := map[string]*money.Idle{}
	list, _ := ask[money.IdleList](ctx, s, ex, "GET /admin/spend/idle", nil) // an error means that idle detection is off
	for _, r := range list.Resources {
		idle[r.ID] = &r.Idle
	}
	for _, r := range l.Resources {
		if sees(ex.Caller, r.Team, r.Key) {
			out.Resources = append(out.Resources, Resource{r, idle[r.ID]})
		}
	}
	return out, nil
}

// decisions returns the decisions on the caller's calls or, for a lead, on all calls of the team.
func (s *Service) decisions(ctx context.Context, ex *filter.Exchange) (any, error) {
	list, err := ask[decisions.List](ctx, s, ex, "GET /admin/decisions", ex.Query)
	if err != nil {
		return nil, err
	}
	shown := make([]explain.Summary, 0, len(list.Decisions))
	for _, d := range list.Decisions {
		if sees(ex.Caller, d.Team, d.Key) {
			shown = append(shown, d.ForCaller())
		}
	}
	list.Decisions = shown
	return list, nil
}

// Decision is a decision as shown to callers.
type Decision struct {
	explain.Summary

	Method   string   `json:"method"`
	Path     string   `json:"path"`
	Stage    string   `json:"stage,omitempty"`
	Detail   string   `json:"detail,omitempty"`
	Approval string   `json:"approval,omitempty"`
	ToPass   []string `json:"toPass,omitempty"`
	// Calls lists the v2 calls that the request resulted in.
	Calls []Call `json:"calls"`
}

// Call is a call to the v2 API, with the verdicts of the policies on it.
type Call struct {
	Operation  string           `json:"operation"`
	Method     string           `json:"method"`
	Path       string           `json:"path"`
	Verdict    explain.Verdict  `json:"verdict"`
	Status     int              `json:"status,omitempty"`
	Detail     string           `json:"detail,omitempty"`
	USDPerHour string           `json:"usdPerHour,omitempty"`
	Policies   []explain.Policy `json:"policies,omitempty"`
}

func (s *Service) decision(ctx context.Context, ex *filter.Exchange) (any, error) {
	if len(ex.Query) > 0 {
		return nil, adminapi.BadParam("query", "parameters are not accepted")
	}
	x, err := ask[explain.Report](ctx, s, ex, "GET /admin/decisions/{id}", url.Values{"id": {ex.Params["id"]}})
	if err != nil {
		return nil, err
	}
	if x.Caller.Org != ex.Caller.Org || !sees(ex.Caller, x.Caller.Team, x.Caller.Key) {
		return nil, adminapi.RefusedError{
			Status: http.StatusNotFound,
			Reason: "decision not found: old decisions are deleted, and an allowed read is stored only by the gateway that decided about it",
		}
	}
	d := &Decision{
		Summary: x.Summary().ForCaller(), Method: x.Method, Path: x.Path, Stage: x.Stage, Detail: x.Detail,
		Approval: x.Approval, ToPass: x.ToPass, Calls: []Call{},
	}
	for i := range x.Calls {
		c := &x.Calls[i]
		d.Calls = append(d.Calls, Call{c.Operation, c.Method, c.Path, c.Verdict, c.Status, c.Detail, c.USDPerHour, explain.ForCaller(c.Policies)})
	}
	return d, nil
}
