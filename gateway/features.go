package gateway

import (
	"context"
	"net/http"

	"github.com/tollgate-dev/tollgate/gateway/access"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/keep"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/selfservice"
	"github.com/tollgate-dev/tollgate/gateway/tasks"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// feature is a part of the gateway. All fields but the name may be empty; the rows of features are listed by operators.
type feature struct {
	name string
	// routes are the routes of v2 that the feature answers itself, with answers by the id of the route.
	routes  []route.Route
	answers map[string]filter.Responder
	// stages returns filters by the names of their stages, which chainOrder lists. It is called for each configuration and changes nothing.
	stages func(c *compiled) stages
	// tasks live as long as the process. Tasks that live until Drained or Ended end in the order of the features.
	tasks []tasks.Task
	// apply follows a state that was put in force; before is nil for the first.
	apply func(before, now *state)
	// sources reports on what the feature works from and keeps looking at.
	sources func() []telemetry.Source
}

// listFeatures lists the features of a gateway that is otherwise complete.
func (g *Gateway) listFeatures() []feature {
	return []feature{
		{
			name: "traffic", stages: g.trafficStages, apply: g.applyTelemetry,
			tasks: []tasks.Task{{Name: "work behind answers", Until: tasks.Drained, Run: tasks.Wait, Drain: g.drainBackground}},
		},
		{name: "spending", stages: g.spendStages, tasks: []tasks.Task{
			{Name: "outbox", Until: tasks.Drained, Run: g.money.Outbox.Run, Drain: g.drainLedger},
			{Name: "ledger images", Until: tasks.Drained, Run: g.money.Images.Run},
			{Name: "journal of owners", Until: tasks.Drained, Run: g.money.Journal.Run},
			{Name: "ledger warnings", Until: tasks.Stopping, Run: tasks.Endless(g.money.WarnOfStore)},
			{Name: "reconciler", Until: tasks.Stopping, Run: g.money.Books.Run},
		}},
		{name: "quotas", stages: g.countStages, tasks: []tasks.Task{
			{Name: "limiter", Until: tasks.Drained, Run: g.counts.Run}, // permits drawn while the doors drain are given back, too
			{Name: "store check", Until: tasks.Drained, Run: g.health.watchStore},
		}},
		{name: "overload", stages: overloadStages},
		{name: "idempotency", stages: g.onceStages, tasks: []tasks.Task{{Name: "intents", Until: tasks.Drained, Run: g.intents.Run}}},
		{name: "callers", stages: g.callerStages, sources: g.keySources, routes: callers.Routes(), answers: g.keys.Answers(), tasks: []tasks.Task{
			{Name: "issuer keys", Until: tasks.Drained, Run: tasks.Endless(g.issuerKeys.Run)},
			{Name: "keys", Until: tasks.Drained, Run: tasks.Endless(g.keys.Run)}, // keys are revoked while the doors drain, too
		}},
		{name: "prices", apply: g.applyPrices, sources: g.priceSources, tasks: []tasks.Task{
			{Name: "catalog", Until: tasks.Stopping, Run: func(ctx context.Context) error { return g.catalog.Run(ctx, orgs(g.view.Config())...) }},
		}},
		{
			name: "policies", stages: g.policyStages, apply: g.applyPolicies, sources: g.bundleSources,
			tasks: []tasks.Task{{Name: "policies", Until: tasks.Stopping, Run: g.follow}},
		},
		{name: "alerts", tasks: []tasks.Task{
			{Name: "exceptions", Until: tasks.Stopping, Run: func(ctx context.Context) error {
				return g.alerts.WatchExceptions(ctx, g.money.Notices, g.money.Books.Lead)
			}},
			{Name: "reports", Until: tasks.Stopping, Run: func(ctx context.Context) error { return g.alerts.WatchReports(ctx, g.operators().reports.Weekly) }},
		}},
		{name: "keep", routes: keep.Routes(), answers: g.keep.Answers()},
		{name: "access", routes: access.Routes(), answers: g.access.Answers()},
		{name: "reference", answers: map[string]filter.Responder{
			"getOpenAPI": filter.Document(http.Header{"Content-Type": {"application/json"}, "Cache-Control": {"max-age=300"}}, g.api.Document),
		}},
		{name: "self-service", routes: selfservice.Routes(), answers: g.selfService().Answers()},
		{name: "estimates", stages: g.estimateStages},
		{name: "fleet", tasks: []tasks.Task{{Name: "fleet", Until: tasks.Drained, Run: g.fleet.Announce}}},
		{name: "platform's description", tasks: []tasks.Task{{Name: "platform's description", Until: tasks.Stopping, Run: g.follower.Run}}},
		// What is delivered to others ends first: the counts after it wait for a store that may be away.
		{name: "audit", stages: auditStages, tasks: g.audit.Tasks(), apply: g.applyAudit},
		{name: "decisions", tasks: g.decisions.Tasks(), apply: func(_, now *state) { g.decisions.Apply(now.Config) }},
		{name: "legacy", stages: g.legacyStages, tasks: g.retired.Tasks()},
	}
}

// selfService answers callers about themselves.
func (g *Gateway) selfService() *selfservice.Service {
	return selfservice.New(selfservice.Deps{
		Rows: g.rows, Access: g.access, Current: g.view, Logger: g.deps.Logger,
	})
}

// applyTelemetry follows the settings of logs and traces.
func (g *Gateway) applyTelemetry(_, now *state) {
	if g.deps.LogLevel != nil {
		g.deps.LogLevel.Set(now.Config.Log.Level.Level())
	}
	g.recorder.Apply(now.Config.Telemetry.Context)
	g.deps.Providers.Sample(now.Config.Telemetry.SampleRatio)
}

// applyPrices forgets lists that were read with another credential, from another platform or with other prices of our own.
func (g *Gateway) applyPrices(before, now *state) {
	if before == nil {
		return
	}
	for _, org := range before.Config.Orgs {
		o := now.Orgs[org.ID]
		if before.account.Upstream.Credential(org.ID) != now.account.Upstream.Credential(org.ID) || before.Config.Platform.BaseURL != now.Config.Platform.BaseURL ||
			o != nil && !o.Prices.Equal(org.Prices) {
			g.catalog.Forget(org.ID)
		}
	}
}

// applyPolicies puts the engine in force, and holds policies against the price lists that were read before.
func (g *Gateway) applyPolicies(before, now *state) {
	g.engines.InForce.Store(now.engine)
	if before == nil {
		return
	}
	for i := range now.Config.Orgs {
		o := &now.Config.Orgs[i]
		g.engines.TellUnlisted(o, g.catalog.Last(o.ID))
	}
}

// applyAudit records the new configuration.
func (g *Gateway) applyAudit(_, now *state) {
	if g.audit.Log == nil {
		return
	}
	if err := g.audit.Log.Loaded(now.Config.Revision); err != nil {
		g.deps.Logger.Error("the audit log cannot be written", "error", err)
	}
}

// sources lists what the gateway works from: the configuration, and the sources of features.
func (g *Gateway) sources() []telemetry.Source {
	report := g.current.status.Report()
	out := []telemetry.Source{{Kind: "configuration", Good: report.Loaded, Failed: report.Why() != ""}}
	if g.current.Load() == nil {
		return out
	}
	for i := range g.features {
		if list := g.features[i].sources; list != nil {
			out = append(out, list()...)
		}
	}
	return out
}

// bundleSources are the bundles of organisations.
func (g *Gateway) bundleSources() (out []telemetry.Source) {
	now := g.current.Load()
	for _, s := range now.engine.Status() {
		if o := now.Orgs[s.Org]; o != nil && o.Policies.Bundle != nil {
			out = append(out, telemetry.Source{Kind: "bundle", Org: s.Org, Good: s.Fetched, Failed: s.Err != nil})
		}
	}
	return out
}

// priceSources are the price lists of organisations.
func (g *Gateway) priceSources() (out []telemetry.Source) {
	for _, s := range g.catalog.Status() {
		out = append(out, telemetry.Source{Kind: "prices", Org: s.Org, Good: s.Fetched, Failed: s.Err != nil})
	}
	return out
}

// keySources are the keys of all issuers as one source, which is as good as the keys that were read the longest ago, and the keys made at run
// time.
func (g *Gateway) keySources() (out []telemetry.Source) {
	issuers, list := telemetry.Source{Kind: "issuers"}, g.issuerKeys.Status()
	for i, one := range list {
		issuers.Failed = issuers.Failed || one.Err != nil
		if i == 0 || one.Fetched.Before(issuers.Good) {
			issuers.Good = one.Fetched
		}
	}
	if len(list) > 0 && (issuers.Failed || !issuers.Good.IsZero()) {
		out = append(out, issuers)
	}
	if keys, err := g.keys.State(); !keys.IsZero() || err != nil {
		out = append(out, telemetry.Source{Kind: "keys", Good: keys, Failed: err != nil})
	}
	return out
}
