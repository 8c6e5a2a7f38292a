package money

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// gateway implements ledger.Gateway. Plans come from the configuration in force.
type gateway struct{ *Deps }

// Peers implements ledger.Gateway.
func (g gateway) Peers() []string { return g.Limits.Alive() }

// Dead implements ledger.Gateway.
func (g gateway) Dead(ctx context.Context, incarnation string) (silent time.Duration, dead bool) {
	return g.Intents.Dead(ctx, incarnation)
}

// Claim implements ledger.Gateway.
func (g gateway) Claim(ctx context.Context, org string, f *ledger.PlatformResource, h *ledger.Hold) (bool, error) {
	return g.Intents.ClaimFound(ctx, org, f, h)
}

// Forget implements ledger.Gateway.
func (g gateway) Forget(ctx context.Context, org string, holds ...string) error {
	return g.Intents.Store().Forget(ctx, org, holds...)
}

// RecordedOwners implements ledger.Gateway. It reads the audit log.
func (g gateway) RecordedOwners(ctx context.Context, org string, ids []string) map[string]ledger.Ownership {
	o, cfg := g.Org(org), g.Config().Audit
	if o == nil || cfg.File == nil {
		return nil
	}
	made, err := audit.Creators(org, audit.Files(cfg.File)...)
	if err != nil {
		g.Logger.WarnContext(ctx, "cannot read the owners of resources from the audit log", "org", org, "error", err.Error())
		return nil
	}
	all := make(map[string]ledger.Ownership)
	for _, id := range ids {
		r, known := made[id]
		if !known {
			continue
		}
		if k := o.Key(r.Key); k != nil && r.Team == "" {
			r.Team = k.Team
		}
		all[id] = ledger.Ownership{
			Owner: ledger.Owner{Team: r.Team, Key: r.Key},
			About: ledger.Metadata{Operation: r.Operation, Decision: r.Decision, Labels: ledger.Labels(r.Labels)},
		}
	}
	return all
}
