package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"
	"golang.org/x/sync/semaphore"

	"github.com/tollgate-dev/tollgate/gateway/access"
	"github.com/tollgate-dev/tollgate/gateway/alerts"
	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/audit/ship"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/dialects"
	"github.com/tollgate-dev/tollgate/gateway/engines"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/fleet"
	"github.com/tollgate-dev/tollgate/gateway/groupcommit"
	"github.com/tollgate-dev/tollgate/gateway/keep"
	"github.com/tollgate-dev/tollgate/gateway/listen"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/oidc"
	"github.com/tollgate-dev/tollgate/gateway/once"
	"github.com/tollgate-dev/tollgate/gateway/overload"
	"github.com/tollgate-dev/tollgate/gateway/questions"
	"github.com/tollgate-dev/tollgate/gateway/retired"
	"github.com/tollgate-dev/tollgate/gateway/revisions"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/selfservice"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/gateway/tenants"
	"github.com/tollgate-dev/tollgate/gateway/tokens"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/gateway/xds"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/spend"
	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/ratelimit/metrics"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	"github.com/tollgate-dev/tollgate/translate"
	translatestore "github.com/tollgate-dev/tollgate/translate/redisstore"
)

// New compiles cfg. It neither dials nor listens; Run does.
func New(cfg settings.Config, deps Deps) (*Gateway, error) {
	g := &Gateway{deps: deps, api: deps.API, view: new(view.Current), swapped: make(chan struct{}, 1), status: new(fleet.Status)}
	var err error
	if g.api == nil {
		if g.api, err = schema.Load(); err != nil {
			return nil, err
		}
	}
	if g.runs, err = schema.LoadRun(); err != nil {
		return nil, err
	}
	g.bodies, g.keyless, g.lists = filter.NewMemory(cfg.Run.Memory), filter.NewMemory(keylessMemory), filter.NewMemory(listsMemory)
	g.webSockets = semaphore.NewWeighted(cfg.Run.WebSockets)
	g.gate = overload.New(cfg.Overload)
	telemetry.MeasureGate(g.meter(), g.gate)
	if g.recorder, err = telemetry.NewRecorder(deps.Logger, deps.Providers.Tracer(), deps.Providers.Meter(), deps.Now); err != nil {
		return nil, err
	}
	if g.store, err = redisstore.New(deps.Redis, redisstore.Config{Prefix: cfg.Redis.Prefix.Limits(), Recovery: cfg.Limits.Recovery}); err != nil {
		return nil, fmt.Errorf("limits: %w", err)
	}
	g.scripts = groupcommit.New(deps.Redis)
	quota := cfg.Limits.Config
	g.name = cmp.Or(cfg.Instance, deps.Instance, rand.Text())
	quota.Gateway = g.name
	if g.limitMetrics, err = metrics.New(deps.Providers.Meter().Meter("github.com/tollgate-dev/tollgate/ratelimit")); err != nil {
		return nil, fmt.Errorf("limits: %w", err)
	}
	g.limiter, err = ratelimit.New(quota, ratelimit.Deps{Store: money.Proving{Store: g.store, Prove: func(ctx context.Context) error { return g.money.Prove(ctx) }}, Clock: clock(deps.Now), Logger: deps.Logger, Timed: g.limitMetrics.Timed})
	if err == nil {
		err = g.limitMetrics.Follow(g.limiter)
	}
	if err != nil {
		return nil, fmt.Errorf("limits: %w", err)
	}
	failures, err := ratelimit.NewAddressLimiter(cfg.Limits.Anonymous, clock(deps.Now))
	if err != nil {
		return nil, err
	}
	keyless, err := ratelimit.NewAddressLimiter(cfg.Legacy.Keyless.Limit, clock(deps.Now))
	if err != nil {
		return nil, err
	}
	if g.attempts, err = ratelimit.NewAddressLimiter(ratelimit.DefaultAddressConfig(), clock(deps.Now)); err != nil {
		return nil, err
	}
	g.guard = filter.NewGuard(failures, keyless, cfg.Limits.AnonymousExempt)
	if g.shares, err = ratelimit.NewUpstream(cfg.Limits.FairShare, clock(deps.Now)); err != nil {
		return nil, err
	}
	if g.catalog, err = catalog.New(cfg.Catalog, catalog.Deps{Fetcher: prices{g}, Now: deps.Now, Logger: deps.Logger}); err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	g.access = access.New(access.Deps{
		API: g.api, Catalog: g.catalog, Limiter: g.limiter, Engine: g.engine, Current: g.view, Now: deps.Now,
		Entries: func(org string) []policies.Entry { return tenants.Entries(g.view.Config(), org) },
		Balances: func(ctx context.Context, org string, owner spend.Owner) (spend.State, error) {
			return g.money.Ledger.Store.Balances(ctx, org, owner)
		},
	})
	g.background.Logger = deps.Logger
	g.newSupervisor()
	g.dialects = translate.Deps{Now: deps.Now, Sleep: deps.Sleep, Store: translatestore.New(g.scripts, cfg.Redis.Prefix.Legacy()), Logger: deps.Logger}.WithDefaults()
	g.streams = filter.NewStreams(g.streamAllowed)
	g.engines = &engines.Engines{Logger: deps.Logger, Changed: g.streams.Recheck, Isolate: deps.Isolate, Arriving: g.reconsider}
	g.issuerKeys = oidc.NewKeys(deps.Now, deps.Logger)
	g.keys = callers.New(cfg.Redis.Prefix, callers.Deps{
		Redis: deps.Redis, Now: deps.Now, Logger: deps.Logger, Issuers: g.issuerKeys, Current: g.view, Apply: g.applyKeys,
		Tokens:  func(ctx context.Context) error { return g.tokens.Refresh(ctx) },
		Tenants: func(cfg *settings.Config) (map[string]*filter.Tenant, error) { return tenants.New(cfg, g.api, g.runs) },
		Callers: func() *callers.Callers { return g.current.Load().callers },
	})
	g.tokens = tokens.New(cfg.Redis.Prefix, tokens.Deps{Redis: deps.Redis, Issuers: g.issuerKeys, Now: deps.Now, Current: g.view, Changed: g.streams.Recheck})
	g.approvals = approval.New(g.scripts, cfg.Redis.Prefix.Approvals())
	if err := g.newDecisions(&cfg); err != nil {
		return nil, err
	}
	if g.audit, err = ship.Open(&cfg.Audit, ship.Deps{Now: deps.Now, Logger: deps.Logger, Providers: deps.Providers, Meter: g.meter()}); err != nil {
		return nil, err
	}
	g.newMoney(&cfg)
	g.retired, err = retired.New(cfg.Redis.Prefix, retired.Deps{
		Redis: deps.Redis, Now: deps.Now, Logger: deps.Logger, Meter: deps.Providers.Meter().Meter("github.com/tollgate-dev/tollgate/translate/usage"),
		Current: g.view,
	})
	if err != nil {
		return nil, err
	}
	g.dialects.Counted = g.money.GPUs
	g.listeners = &listen.Listeners{
		Current:     g.view,
		Signers:     func() *x509.CertPool { return g.pipeline().Callers.Directory.Signers() },
		Revocations: func() map[string]time.Time { return g.pipeline().Callers.Directory.Revocations() },
		Now:         deps.Now, Logger: deps.Logger, Refused: g.recorder.Refused, End: g.streams.End,
	}
	g.listeners.Measure(g.meter())
	measureSources(g.meter(), deps.Now, g.sources)
	g.envoys, err = xds.NewServer(xds.Deps{
		Logger: deps.Logger, Meter: deps.Providers.Meter().Meter("github.com/tollgate-dev/tollgate/gateway/xds"), Now: deps.Now,
		Token: func() string { return g.view.Config().Envoy.XDS.Token.Reveal() },
	})
	if err != nil {
		return nil, err
	}
	sources := g.adminDeps()
	sources.Features = g.operators().rows()
	g.rows = sources.Rows()
	g.selfService = selfservice.New(selfservice.Deps{
		Rows: g.rows, Limits: g.access.Limits, Budgets: g.access.Budgets, Current: g.view, Now: deps.Now, Logger: deps.Logger,
	})
	if err := g.Swap(cfg); err != nil {
		g.engines.Close()
		g.audit.Close()
		g.money.Journal.Close()
		return nil, err
	}
	return g, nil
}

// newDecisions makes the store and the explanations of decisions, and the list of gateways that have them.
func (g *Gateway) newDecisions(cfg *settings.Config) (err error) {
	g.fleet = &fleet.Fleet{
		Redis: g.deps.Redis, Key: cfg.Redis.Prefix.Running(), Instance: g.name, Version: g.deps.Version, Status: g.status,
		Undelivered: func() []string { return slices.Concat(g.decisions.Undelivered(), g.audit.Undelivered()) },
		Since:       g.deps.Now(), Envoys: func() int { return len(g.envoys.Nodes()) }, Groups: func() []xds.GroupStatus { return g.envoys.Groups() }, Policies: g.policyStatus,
		Current: g.view, Now: g.deps.Now,
	}
	g.revisions = &revisions.Revisions{
		Journal: revisions.NewJournal(g.deps.Redis, cfg.Redis.Prefix), Gateway: g.name, Version: g.deps.Version,
		Current: g.view, File: g.deps.File,
	}
	g.decisions, err = decisions.New(cfg, decisions.Deps{
		Redis: g.deps.Redis, Now: g.deps.Now, Logger: g.deps.Logger, Meter: g.meter(), PolicyMeter: g.deps.Providers.Meter().Meter("github.com/tollgate-dev/tollgate/policies"),
		Go: g.background.Go, Stdout: g.deps.Stdout, Also: g.deps.Decisions, Current: g.view, Chain: func() *filter.Chain { return g.pipeline().Chain }, Draining: g.status.Drains(),
	})
	g.questions = &questions.Questions{
		Current: g.view, DryRun: g.dryRun, Account: g.account, Catalog: g.catalog, API: g.api, Now: g.deps.Now,
		Decide: func(ctx context.Context, org string, in *policies.Input) (policies.Decision, error) {
			return g.current.Load().engine.Decide(ctx, org, in)
		},
		Owners: func(ctx context.Context, org string, ids []string) ([]spend.Owner, error) {
			return g.money.Ledger.Owners(ctx, org, ids)
		},
	}
	return err
}

// dryRun returns a dry run of the configuration in force.
func (g *Gateway) dryRun() (*explain.DryRun, error) {
	now := g.current.Load()
	// Resources of a dry run must not be remembered.
	legacy, err := dialects.New(now.Config, translate.Deps{Now: g.deps.Now}.WithDefaults(), nil)
	if err != nil {
		return nil, err
	}
	return &explain.DryRun{
		Pipeline: now.pipeline, Translators: legacy.Translators(),
		Counted: g.limiter.Show, Reads: filter.ReadsOf(g.api), Reader: now.reader,
		Ledger: g.money.Ledger.Store.Show, Approval: g.approvals.Get, Entries: func(org string) []policies.Entry { return tenants.Entries(now.Config, org) }, Decide: now.engine.Decide, Now: g.deps.Now,
	}, nil
}

// newMoney makes the ledger and the receivers of its findings.
func (g *Gateway) newMoney(cfg *settings.Config) {
	g.keep = &keep.Service{
		Current: g.view, Now: g.deps.Now, Refused: g.access.Refused,
		Updates: explain.UpdatesOf(g.api),
	}
	g.alerts = &alerts.Alerts{
		Current: g.view, Logger: g.deps.Logger, Now: g.deps.Now, Go: g.background.Go, Meter: g.meter(), KeepLink: g.keep.Link,
		Approvals: g.approvals, Notices: func() spend.Notices { return g.money.Notices }, Told: alerts.NewTold(g.deps.Redis, cfg.Redis.Prefix),
	}
	self := spend.Holder{Incarnation: ulid.Make().String(), Gateway: cmp.Or(cfg.Instance, g.deps.Instance)}
	g.intents = once.NewDesk(g.scripts, cfg.Redis.Prefix.Intents(), self.Incarnation, g.background.Go, g.deps.Logger)
	peers := g.store.Alive
	if cfg.Redis.Embedded {
		peers = nil
	}
	g.intents.Follow(g.name, peers)
	g.money = money.New(cfg, self, money.Deps{
		Intents: g.intents.Store(),
		Scripts: g.scripts, Now: g.deps.Now, Logger: g.deps.Logger, Meter: g.meter(), Go: g.background.Go, Gateway: g.name, Alone: cfg.Redis.Embedded, Limits: g.store, Catalog: g.catalog,
		State: g.deps.State,
		Audit: g.audit.Log, Alerts: g.alerts, Did: g.decisions.Did, Job: g.job, Claim: once.ClaimFor(g.intents), Dead: g.intents.Dead,
		Current: g.view, Account: g.account,
	})
}
