package gateway

import (
	"cmp"
	"context"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/tenants"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// Audit holds everything that an organisation has against the policies in force. It
// makes reads only.
func (g *Gateway) Audit(ctx context.Context, org string) (*explain.Audit, error) {
	o := g.org(org)
	if o == nil {
		return nil, admin.ErrNoOrg
	}
	ctx, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	now := g.current.Load()
	prices, err := g.catalog.Snapshot(ctx, org)
	if err != nil {
		return nil, err
	}
	list, err := now.reader.Resources(ctx, org, cmp.Or(tenants.Plan(o), new(spend.Plan)), operation.Owned, prices)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(list))
	for i, it := range list {
		ids[i] = it.ID
	}
	reason := "the organisation has neither budgets nor isolation: no ledger is kept"
	var owners []spend.Owner
	if tenants.Budgeted(o) {
		reason = ""
		if owners, err = g.money.Ledger.Owners(ctx, org, ids); err != nil {
			reason, owners = err.Error(), nil
		}
	}
	auditor := &explain.Auditor{Updates: explain.UpdatesOf(g.api), Decide: now.engine.Decide}
	audit := auditor.Run(ctx, org, list, owners, policies.Input{Catalog: prices, Time: g.deps.Now()})
	audit.Ownerless = reason
	return audit, nil
}

// Audit implements admin.Decisions.
func (d decisions) Audit(ctx context.Context, org string) (any, error) { return d.g.Audit(ctx, org) }
