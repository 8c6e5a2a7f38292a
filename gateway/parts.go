package gateway

import (
	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/alerts"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/idempotency"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/platform"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
)

// userAgent returns the User-Agent header of requests to the platform.
func userAgent(version string) string { return "tollgate/" + version }

// ports returns the ports of the filters that do not depend on the configuration.
func (p *parts) ports() filter.Ports {
	return filter.Ports{
		Background: p.background.Go, Gate: p.room.Gate, Counter: p.counts.Limiter, Shares: p.counts.Shares, Ledger: p.money.Ledger,
		Snoozer: p.money.Snoozer, Prices: p.prices, Audit: p.audit.Log, Observer: p.decisions, Decisions: p.decisions.Recorder(),
		Approvals: alerts.NewGrants(p.approvals.Store, p.alerts), LeadsMayManage: true,
	}
}

// compileTraffic adds the platform clients and the ports that use them.
func (p *parts) compileTraffic(c *compiled) error {
	c.pipeline.Ports = p.ports()
	client, err := platform.New(c.cfg)
	if err != nil {
		return err
	}
	if c.runs, err = platform.NewRuns(c.cfg, p.runs); err != nil {
		return err
	}
	c.pipeline.Ports.ReadCache = filter.NewReadCache(p.deps.Now)
	c.pipeline.Upstream, c.account = client, upstream.NewAccount(client, p.api, userAgent(p.deps.Version))
	c.account.Runs = c.runs.Client
	c.reader = &filter.Reader{
		Upstream: client, Recorder: p.recorder, Agent: c.account.Agent, Gets: c.account.Gets,
		Health: p.runs.Operation("endpointHealth"),
	}
	c.addresses = filter.RewriteAddresses{Public: platform.PublicRuns(c.cfg), Balanced: platform.PublicBalanced(c.cfg)}
	c.pipeline.Ports.Sender = &filter.Dispatcher{
		Upstream: client, Run: c.runs.Client, Balanced: c.runs.Balanced, Recorder: p.recorder, Deadline: c.cfg.Timeouts.Call,
		Streams: p.streams, WebSockets: p.room.WebSockets, Lists: p.room.Lists,
	}
	return nil
}

func (p *parts) compileIntents(c *compiled) error {
	c.pipeline.Ports.Intents = &idempotency.Deduplicator{
		Tracker: p.intents, Reader: c.reader, Account: c.account, Addresses: c.addresses,
		LookupTimeout: c.cfg.Timeouts.Lookup, CallTimeout: c.cfg.Timeouts.Call + money.SettlementGrace,
		Unresolved: p.current.started.Spend.Unresolved,
	}
	return nil
}

func (p *parts) compileCallers(c *compiled) (err error) {
	if c.callers, err = p.keys.Callers(c.cfg); err != nil {
		return err
	}
	c.pipeline.Callers = c.callers.Callers
	admins, err := admin.NewDirectory(c.cfg.Admin.Token.Reveal(), c.cfg.Admin.Admins)
	if err == nil {
		c.admins = admins.WithIssuers(c.cfg.Admin.Issuers, p.keys.Tokens.Issuers()).WithOrgs(callers.Orgs(c.cfg))
	}
	return err
}

func (p *parts) compilePolicies(c *compiled) (err error) {
	c.engine, err = p.engines.New(c.cfg, p.current.engine())
	return err
}

// applyCallers drops keys of token issuers that are no longer configured.
func (p *parts) applyCallers(_, now *state) {
	p.keys.Tokens.Issuers().Retain(now.pipeline.Callers.Directory.Verifier(), now.admins.Verifier())
}

// applyTelemetry applies the settings of logs and traces.
func (p *parts) applyTelemetry(_, now *state) {
	if p.deps.LogLevel != nil {
		p.deps.LogLevel.Set(now.Config.Log.Level.Level())
	}
	p.recorder.Apply(now.Config.Telemetry.Context)
	p.deps.Providers.Sample(now.Config.Telemetry.SampleRatio)
}

// applyPrices drops the price lists of organisations whose credential, platform or custom prices have changed.
func (p *parts) applyPrices(before, now *state) {
	if before == nil {
		return
	}
	for _, org := range before.Config.Orgs {
		o := now.Orgs[org.ID]
		if before.account.Upstream.Credential(org.ID) != now.account.Upstream.Credential(org.ID) ||
			before.Config.Platform.BaseURL != now.Config.Platform.BaseURL ||
			o != nil && !o.Prices.Equal(org.Prices) {
			p.prices.Forget(org.ID)
		}
	}
}

// applyPolicies puts the policy engine in force and checks changed policies against the current price lists.
func (p *parts) applyPolicies(before, now *state) {
	p.engines.InForce.Store(now.engine)
	if before == nil {
		return
	}
	for i := range now.Config.Orgs {
		if o := &now.Config.Orgs[i]; !o.EqualTo(before.Orgs[o.ID]) {
			p.engines.LogUnlisted(o, p.prices.Last(o.ID))
		}
	}
}

// applyAudit records the new configuration in the audit log.
func (p *parts) applyAudit(_, now *state) {
	if p.audit.Log == nil {
		return
	}
	if err := p.audit.Log.Loaded(now.Config.Revision); err != nil {
		p.deps.Logger.Error("cannot write the audit log", "error", err)
	}
}

// bundleSources returns the status of the organisations' policy bundles.
func (p *parts) bundleSources() (out []telemetry.Source) {
	now := p.current.Load()
	for _, s := range now.engine.Status() {
		if o := now.Orgs[s.Org]; o != nil && o.Policies.Bundle != nil {
			out = append(out, telemetry.Source{Kind: "bundle", Org: s.Org, LastSuccess: s.Fetched, Failed: s.Err != nil})
		}
	}
	return out
}

// priceSources returns the status of the organisations' price lists.
func (p *parts) priceSources() (out []telemetry.Source) {
	for _, s := range p.prices.Status() {
		out = append(out, telemetry.Source{Kind: "prices", Org: s.Org, LastSuccess: s.Fetched, Failed: s.Err != nil})
	}
	return out
}

// keySources returns two sources: the keys of the token issuers, with the age of the oldest of them, and the keys created at run time.
func (p *parts) keySources() (out []telemetry.Source) {
	issuers, list := telemetry.Source{Kind: "issuers"}, p.keys.Tokens.Issuers().Status()
	for i, one := range list {
		issuers.Failed = issuers.Failed || one.Err != nil
		if i == 0 || one.Fetched.Before(issuers.LastSuccess) {
			issuers.LastSuccess = one.Fetched
		}
	}
	if len(list) > 0 && (issuers.Failed || !issuers.LastSuccess.IsZero()) {
		out = append(out, issuers)
	}
	if keys, err := p.keys.State(); !keys.IsZero() || err != nil {
		out = append(out, telemetry.Source{Kind: "keys", LastSuccess: keys, Failed: err != nil})
	}
	return out
}
