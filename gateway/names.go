package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"os"
	"slices"

	"github.com/tollgate-dev/tollgate/gateway/check"
	"github.com/tollgate-dev/tollgate/gateway/coverage"
	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/questions"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/tenants"
	"github.com/tollgate-dev/tollgate/gateway/xds"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Instance returns the name of this process among the gateways that share a store, and in the
// log: the configured name, or a name after the machine.
func Instance(cfg *settings.Config) string {
	host, err := os.Hostname()
	if err != nil || ratelimit.CheckGateway(host) != nil {
		host = "tollgate"
	}
	return cmp.Or(cfg.Instance, host+"-"+rand.Text()[:8])
}

// The methods below answer the command line's questions about features.

// Judge is [check.Judge].
type Judge = check.Judge

// NodeGroup is [envoy.NodeGroup].
func NodeGroup(c *settings.Config, id string) (xds.Group, []xds.Gateway, error) {
	return envoy.NodeGroup(c, id)
}

// KeepsLedger reports whether an organisation of a configuration has a ledger of spending.
func KeepsLedger(c *settings.Config) bool {
	return slices.ContainsFunc(c.Orgs, func(o settings.Org) bool { return tenants.Budgeted(&o) })
}

// CoverageOf is [coverage.Of].
func CoverageOf(api []*schema.Operation) []coverage.Row {
	return coverage.Of(api)
}

// Question is [questions.Question].
type Question = questions.Question

// Explain is that of [questions.Questions].
func (g *Gateway) Explain(ctx context.Context, q Question) (*explain.Report, error) {
	return g.questions.Explain(ctx, q)
}

// ExplainOffline is that of [questions.Questions].
func (g *Gateway) ExplainOffline(ctx context.Context, q Question) (*explain.Report, error) {
	return g.questions.ExplainOffline(ctx, q)
}

// Audit is that of [questions.Questions].
func (g *Gateway) Audit(ctx context.Context, org string) (*explain.Audit, error) {
	return g.questions.Audit(ctx, org)
}

// Reopen makes the decision log follow a file that was renamed.
func (g *Gateway) Reopen() { g.decisions.Reopen() }
