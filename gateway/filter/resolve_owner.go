package filter

import (
	"context"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// readLedger reads the facts from the ledger that the organisation's policies use: the owner of the resource and the spending of the
// caller's scopes. Each takes one request to the store.
func (f *EvaluatePolicies) readLedger(ctx context.Context, ex *Exchange, row operation.Spec, verb operation.Verb) error {
	org, in := ex.Caller.Org, ex.Evaluation.Input
	if operation.HasOwner(row.Kind) && len(f.Policies.PoliciesReading(org, "resource", "owner")) > 0 {
		if err := f.owner(ctx, ex, verb); err != nil {
			return err
		}
	}
	if plan := ex.Tenant.Budgets; plan != nil && verb.Changes() && len(f.Policies.PoliciesReading(org, "spend")) > 0 {
		o := ledger.Owner{Team: ex.Caller.Team, Key: ex.Caller.Key}
		balances, err := ex.Ports.Ledger.Balances(ctx, org, o)
		if err == nil {
			in.Spend = spentBy(balances, plan)
		} else {
			ex.Event.Cause = err // policies see spending as unknown
		}
	}
	return nil
}

// owner sets the owner of the resource. A resource hidden from the caller has no owner.
func (*EvaluatePolicies) owner(ctx context.Context, ex *Exchange, verb operation.Verb) error {
	id := ex.Params["id"]
	var owner ledger.Owner
	switch {
	case verb == operation.VerbCreate:
		owner = ledger.Owner{Team: ex.Caller.Team, Key: ex.Caller.Key}
	case id == "" || ex.Access.hidden[id] != "":
		return nil
	case ex.Access.owner != nil:
		owner = *ex.Access.owner
	case ex.Tenant.Budgets != nil:
		owners, err := ex.Ports.Ledger.Owners(ctx, ex.Caller.Org, []string{id})
		if err != nil {
			return problem.LedgerUnavailable.New("the owner of this resource, which a policy needs, cannot be determined right now; try again later").With("Retry-After", "1").Because(err)
		}
		owner = owners[0]
	}
	ex.Evaluation.Input.Resource.Owner = &policies.Owner{Team: owner.Team, Key: owner.Key}
	return nil
}

// spentBy converts balances to the form used by policies.
func spentBy(balances []ledger.Balance, plan *ledger.Plan) policies.Spend {
	s := policies.Spend{Known: true}
	for _, b := range balances {
		to := map[ledger.ScopeKind]*policies.Account{ledger.KindOrg: &s.Org, ledger.KindTeam: &s.Team, ledger.KindKey: &s.Key}[b.Scope.Kind]
		sum := func(dimension int) int64 { return b.Committed[dimension] + b.Reserved[dimension] }
		budget := plan.Budget(b.Scope)
		limit := func(m catalog.Money) *catalog.Money {
			if m == 0 {
				return nil
			}
			return &m
		}
		*to = policies.Account{
			Burn: catalog.Money(sum(ledger.Burn)), Day: catalog.Money(b.Day), Month: catalog.Money(b.Month),
			Week: catalog.Money(b.Week), Quarter: catalog.Money(b.Quarter), Total: catalog.Money(b.Total),
			BurnLimit: limit(budget.PerHour), DayLimit: limit(budget.PerDay), MonthLimit: limit(budget.PerMonth),
			WeekLimit: limit(budget.PerWeek), QuarterLimit: limit(budget.PerQuarter), TotalLimit: limit(budget.Total),
			GPUs: sum(ledger.GPUs), Pods: sum(ledger.Pods), Workers: sum(ledger.Workers), VolumeGB: sum(ledger.VolumeGB),
			Sandboxes: sum(ledger.Sandboxes),
		}
	}
	return s
}
