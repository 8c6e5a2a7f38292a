package filter

import (
	"context"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// readLedger fills in the ledger's facts, as far as policies of the organisation read
// it: whose the object is, and the spend of the caller's scopes. Each is one
// question to the store.
func (f *EvaluatePolicies) readLedger(ctx context.Context, ex *Exchange, row operation.Row, verb operation.Verb) error {
	org, in := ex.Caller.Org, ex.Evaluation.Input
	if operation.Owned(row.Kind) && len(f.Policies.Readers(org, "resource", "owner")) > 0 {
		if err := f.owner(ctx, ex, verb); err != nil {
			return err
		}
	}
	if plan := ex.Tenant.Budgets; plan != nil && verb.Changes() && len(f.Policies.Readers(org, "spend")) > 0 {
		o := ledger.Owner{Team: ex.Caller.Team, Key: ex.Caller.Key}
		balances, err := ex.Ports.Ledger.Balances(ctx, org, o)
		if err == nil {
			in.Spend = spentBy(balances, plan)
		} else {
			ex.Event.Cause = err // policies see that nothing is known
		}
	}
	return nil
}

// owner fills in whose the object is. A resource hidden from the caller has no owner.
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
			return problem.LedgerUnavailable.New("it cannot be determined at the moment whose this is, which a policy asks for").With("Retry-After", "1").Because(err)
		}
		owner = owners[0]
	}
	ex.Evaluation.Input.Resource.Owner = &policies.Owner{Team: owner.Team, Key: owner.Key}
	return nil
}

// spentBy is the spend of scopes, in the words of policies.
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
