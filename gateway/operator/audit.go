package operator

import (
	"cmp"
	"context"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Audit checks all resources of an organisation against the policies in force. It sends
// only reads to the platform.
func (a *Explainer) Audit(ctx context.Context, org string) (*explain.Audit, error) {
	o := a.Org(org)
	if o == nil {
		return nil, adminapi.ErrUnknownOrg
	}
	ctx, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	now := a.Compiled()
	prices, err := a.Catalog.Snapshot(ctx, org)
	if err != nil {
		return nil, err
	}
	list, err := now.Account.Resources(ctx, org, cmp.Or(callers.LedgerPlan(o), new(ledger.Plan)), operation.HasOwner,
		new(ledger.State).Has, prices)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(list))
	for i, it := range list {
		ids[i] = it.ID
	}
	reason := "the organisation has no ledger, because neither budgets nor isolation are configured"
	var owners []ledger.Owner
	if callers.HasLedger(o) {
		reason = ""
		if owners, err = a.Ledger.Owners(ctx, org, ids); err != nil {
			reason, owners = err.Error(), nil
		}
	}
	auditor := &explain.Auditor{Updates: filter.UpdateOperations(a.API), Engine: now.Engine}
	audit := auditor.Run(ctx, org, list, owners, policies.Input{Catalog: prices, Time: a.Now()})
	audit.Ownerless = reason
	return audit, nil
}
