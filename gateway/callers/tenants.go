package callers

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// maxClasses is the maximum number of classes that may contain one operation.
const maxClasses = ratelimit.MaxScopes - filter.MaxCallerScopes

// compileTenant converts a configured organisation to the form that the filter chain uses. Errors have paths relative to the organisation.
func compileTenant(cfg *settings.Config, o *settings.Org, api, runs *schema.API) (*filter.Tenant, error) {
	t := &filter.Tenant{
		ID: o.ID, Contact: o.Contact, PlatformName: cfg.Legacy.KnownName(), Limits: o.Limits(),
		Failure: o.Failure.WithDefaults(cfg.Limits.Failure),
		Weights: make(map[string]int64), Classes: make(map[string][]filter.Class),
		ChangesBodies: changesBodies(o), Budgets: LedgerPlan(o), Runs: o.Prices.Runs, Isolation: isolationOf(o.Isolation),
		Labels: o.Labels, KeyLabels: keyLabels(o),
		ModelPaths:       o.ModelPaths,
		RejectCallerKeys: o.KeysInBodies.Refused(),
		Unknown:          filter.Unknown{Members: o.Unknown.Members.Forwards(), Reads: o.Unknown.Reads.Forwards()},
	}
	var errs fault.Found
	for j, path := range o.ModelPaths {
		errs.If(!runs.Operation("modelCall").ValidPathParam("path", path), fault.Index("model_paths", j),
			"must be a single path segment of a-z, 0-9 and _, such as responses")
	}
	for _, team := range o.Teams {
		if team.Weight > 0 {
			t.Weights[team.ID] = team.Weight
		}
	}
	for j, c := range o.Classes {
		for k, op := range c.Operations {
			at := fault.Index(fault.Index("classes", j)+".operations", k)
			errs.If(api.Operation(op) == nil && runs.Operation(op) == nil, at,
				"unknown operation %q; use an operation of the v2 API or the run interface", op)
			t.Classes[op] = append(t.Classes[op], CompileClass(c))
			errs.If(len(t.Classes[op]) > maxClasses, at, "%s belongs to more than %d classes", op, maxClasses)
		}
	}
	return t, errors.Join(errs...)
}

// keyLabels returns the labels that keys may set, for keys that may not set all labels of the organisation.
func keyLabels(o *settings.Org) map[string][]ledger.LabelRule {
	of := make(map[string][]ledger.LabelRule)
	for k := range o.AllKeys() {
		if k.Labels != nil {
			of[k.ID] = Labels(o, k)
		}
	}
	return of
}

// Labels returns the labels that a key may set.
func Labels(o *settings.Org, k *settings.Key) []ledger.LabelRule {
	if k.Labels == nil {
		return o.Labels
	}
	return slices.DeleteFunc(slices.Clone(o.Labels), func(r ledger.LabelRule) bool { return !slices.Contains(k.Labels, r.Name) })
}

// LedgerPlan returns the spending plan of an organisation, or nil if the organisation needs no ledger. A ledger is needed for budgets,
// isolation, labels, and the detection of idle resources or unusual spending.
func LedgerPlan(o *settings.Org) *ledger.Plan {
	if p := spendingPlan(o); needsLedger(o) || p.Limited() {
		return p
	}
	return nil
}

// needsLedger reports whether an organisation needs a ledger independent of its budgets.
func needsLedger(o *settings.Org) bool {
	return o.Isolation.Applies() || o.Idle.For > 0 || o.Alerts.Unusual.Times > 0 || len(o.Labels) > 0
}

// spendingPlan returns the spending plan of an organisation, whether or not it needs a ledger.
func spendingPlan(o *settings.Org) *ledger.Plan {
	teams, keys := make(map[string]ledger.Budget, len(o.Teams)), make(map[string]ledger.Budget, len(o.Keys)+len(o.RuntimeKeys))
	for _, t := range o.Teams {
		teams[t.ID] = t.Budget
	}
	for k := range o.AllKeys() {
		keys[k.ID] = k.Budget
	}
	for _, i := range o.Issued {
		keys[settings.IssuerKeyPrefix(i.ID)] = i.Budget
	}
	budget := o.Budget
	inFlight(o, &budget, teams)
	over := make(map[string]ledger.OverBudgetAction, len(o.Teams))
	var moves []ledger.Move
	for _, t := range o.Teams {
		if over[t.ID] = t.Over; t.Former != "" {
			moves = append(moves, ledger.Move{From: t.Former, To: t.ID})
		}
	}
	for i := range o.Keys {
		if k := &o.Keys[i]; k.MovedFrom != "" {
			moves = append(moves, ledger.Move{From: k.MovedFrom, To: k.Team, Key: k.ID})
		}
	}
	return &ledger.Plan{
		Org: budget, Teams: teams, Keys: keys, Horizon: o.Horizon, Endpoints: o.Endpoints, Runs: o.Runs, Idle: o.Idle, Unusual: o.Alerts.Unusual,
		Thresholds: o.Alerts.ThresholdsOrDefault(), OrgAction: o.Over, TeamActions: over, Moves: moves,
	}
}

// inFlight converts enforced entries of the policy gpu_in_flight that apply to all callers of a team to budget limits.
// The ledger enforces these for concurrent calls, whereas a policy evaluates one call with the counts before it.
func inFlight(o *settings.Org, org *ledger.Budget, teams map[string]ledger.Budget) {
	const policy = "gpu_in_flight"
	if slices.ContainsFunc(o.Policies.Exceptions, func(x policies.Exception) bool { return x.Policy == policy }) {
		return
	}
	lower := func(b *ledger.Budget, param any) {
		if n, err := strconv.ParseInt(fmt.Sprint(param), 10, 64); err == nil && n > 0 && (b.GPUs == 0 || n < b.GPUs) {
			b.GPUs = n
		}
	}
	for _, e := range o.Policies.Policies {
		if e.Policy != policy || e.Mode.OrDefault() != policies.ModeEnforce || e.Approvable || len(e.Roles)+len(e.ExceptRoles) > 0 {
			continue
		}
		if len(e.Teams)+len(e.ExceptTeams) == 0 {
			lower(org, e.Params["max_per_org"])
		}
		for id, b := range teams {
			if e.AppliesTo(id, nil) {
				lower(&b, e.Params["max_per_team"])
				teams[id] = b
			}
		}
	}
}

// HasLedger reports whether an organisation has a ledger. If it does, LedgerPlan returns a plan.
func HasLedger(o *settings.Org) bool { return needsLedger(o) || spendingPlan(o).Limited() }

// changesBodies reports whether the policies of an organisation may modify bodies: some library policies do, and the policies of the
// organisation's own Rego can.
func changesBodies(o *settings.Org) bool {
	return !o.Policies.Directory.IsZero() || o.Policies.Bundle != nil ||
		slices.ContainsFunc(o.Policies.Policies, func(e policies.Entry) bool {
			p, ok := compiler.Lookup(e.Policy)
			return ok && p.Mutates
		})
}

// CompileClass converts a configured class to the form that the filter chain uses.
func CompileClass(c settings.Class) filter.Class {
	return filter.Class{ID: c.ID, Per: ratelimit.ScopeKind(cmp.Or(c.Per, settings.Per(ratelimit.KindKey))), Cost: c.Cost, Limit: c.Limit}
}

func isolationOf(i settings.Isolation) filter.Isolation {
	c := filter.Isolation{
		Read: filter.AccessScope(i.Read), Change: filter.AccessScope(cmp.Or(i.Change, i.Read)),
		Unowned: i.Unowned != "org", Exempt: i.Exempt,
	}
	if len(c.Exempt) == 0 {
		c.Exempt = []identity.Role{identity.RoleAdmin}
	}
	return c
}
