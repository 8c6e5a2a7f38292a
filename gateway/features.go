package gateway

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/alerts"
	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/idempotency"
	"github.com/tollgate-dev/tollgate/gateway/legacy"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/gateway/platform"
	"github.com/tollgate-dev/tollgate/gateway/selfservice"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/gateway/tasks"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
)

// chainOrder returns the names of the stages of each part of the chain, in order. Cheap checks precede expensive checks, authentication
// precedes quotas, and quotas are checked before the body is read.
func chainOrder() (order struct{ Headers, Body, Call []string }) {
	order.Headers = []string{
		"assign ids", "limit size", "match route", "check headers", "authenticate", "record legacy use", "limit concurrency",
		"rate limit", "require route",
	}
	order.Body = []string{"limit size", "dry run", "answer locally", "decode body", "limit concurrency", "brownout", "translate"}
	order.Call = []string{
		"rate limit", "strip caller keys", "read labels", "idempotency", "check ownership", "evaluate policies", "paginate", "recheck rate limit",
		"reserve budget", "audit", "build request", "sanitize response", "measure usage", "rewrite addresses",
		"recover lost create", "fair share",
	}
	return order
}

// feature is a part of the gateway. All fields except name may be nil.
type feature struct {
	name string
	// rows returns the admin API endpoints of the feature. It must also work without a gateway, because the documentation is generated without
	// one.
	rows func() []adminapi.Endpoint
	// routes returns the routes that the feature serves.
	routes func() []filter.Served
	// compile adds the parts of the feature to the compiled configuration. It must not have other side effects.
	compile func(c *compiled) error
	// stages returns the filters of the feature by stage name; chainOrder lists the names. For each configuration, it is called after the
	// compile functions of all features.
	stages func(c *compiled) stages
	// tasks returns the tasks that run until the process shuts down. Tasks that run until Drained or Ended are ended in the order of the
	// features.
	tasks func() []tasks.Task
	// apply is called after a state has been put in force. before is nil for the first state.
	apply func(before, now *state)
	// sources reports the status of the feature's external sources.
	sources func() []telemetry.Source
}

// parts holds the components of all features. The zero value can only be used to list endpoints.
type parts struct {
	*kit
	scripts   *store.BatchClient  // batches commands to Redis
	store     *redisstore.Store   // of quotas
	rows      []adminapi.Endpoint // of the admin listener
	health    *health
	engines   *operator.EngineFactory
	drafts    operator.Drafts
	described operator.Policies
	prices    *catalog.Catalog
	keys      *callers.Keys
	operators callers.Operators
	decisions *decisions.Decisions
	audit     *audit.Shipping
	approvals approval.Service
	alerts    *alerts.Alerts
	reports   alerts.Reports
	intents   *idempotency.Tracker
	money     *money.Money
	counts    *operator.Limiters
	limits    operator.Limits
	room      filter.Capacity
	access    *callers.Access
	keep      *money.Snooze
	self      *selfservice.Service
	envoys    *envoy.Server
	legacy    *legacy.Calls
	questions *operator.Explainer
	follower  *platform.Follower
	fleet     *operator.Fleet
	revisions *operator.Revisions
	overview  operator.OverviewSources
	search    operator.Search
	fitting   operator.Fitting
}

// list returns all features.
func (p *parts) list() []feature {
	return []feature{
		{name: "traffic", compile: p.compileTraffic, stages: p.trafficStages, apply: p.applyTelemetry, tasks: func() []tasks.Task {
			return []tasks.Task{{Name: "background work", Until: tasks.Drained, Run: tasks.UntilDone, Drain: p.drainBackground}}
		}},
		{name: "overview", rows: p.overview.Endpoints},
		{name: "search", rows: p.search.Endpoints},
		{name: "fitting GPUs", rows: p.fitting.Endpoints},
		{name: "spending", rows: p.money.Endpoints, stages: p.spendStages, tasks: func() []tasks.Task {
			return []tasks.Task{
				{Name: "outbox", Until: tasks.Drained, Run: p.money.Outbox.Run, Drain: p.drainLedger},
				{Name: "ledger images", Until: tasks.Drained, Run: p.money.Watcher.Run},
				{Name: "journal of owners", Until: tasks.Drained, Run: p.money.Journal.Run},
				{Name: "ledger warnings", Until: tasks.Stopping, Run: tasks.NoError(p.money.WarnAboutDurability)},
				{Name: "reconciler", Until: tasks.Stopping, Run: p.money.Loop.Run},
			}
		}},
		{name: "quotas", rows: p.limits.Endpoints, stages: p.countStages, tasks: func() []tasks.Task {
			return []tasks.Task{
				{Name: "limiter", Until: tasks.Drained, Run: p.counts.Run}, // permits acquired during draining are returned too
				{Name: "store check", Until: tasks.Drained, Run: p.health.watchStore},
			}
		}},
		{name: "overload", stages: overloadStages},
		{name: "idempotency", compile: p.compileIntents, stages: onceStages, tasks: func() []tasks.Task {
			return []tasks.Task{{Name: "intents", Until: tasks.Drained, Run: p.intents.Run}}
		}},
		{name: "approvals", rows: p.approvals.Endpoints},
		{
			name: "callers", rows: p.operators.Endpoints, routes: p.keys.Routes,
			compile: p.compileCallers, stages: p.callerStages,
			apply: p.applyCallers, sources: p.keySources, tasks: func() []tasks.Task {
				return []tasks.Task{
					{Name: "issuer keys", Until: tasks.Drained, Run: tasks.Every(callers.IssuerPollInterval, p.keys.Tokens.Issuers().Refresh)},
					{Name: "keys", Until: tasks.Drained, Run: tasks.Every(callers.PollInterval, p.keys.Poll)}, // keys may be revoked during draining
				}
			},
		},
		{name: "prices", apply: p.applyPrices, sources: p.priceSources, tasks: func() []tasks.Task {
			return []tasks.Task{{
				Name: "catalog", Until: tasks.Stopping,
				Run: func(ctx context.Context) error { return p.prices.Run(ctx, p.current.view.OrgIDs("")...) },
			}}
		}},
		{
			name: "policies", rows: func() []adminapi.Endpoint { return slices.Concat(p.drafts.Endpoints(), p.described.Endpoints()) },
			compile: p.compilePolicies, stages: p.policyStages, apply: p.applyPolicies, sources: p.bundleSources,
			tasks: func() []tasks.Task { return []tasks.Task{{Name: "policies", Until: tasks.Stopping, Run: p.follow}} },
		},
		{name: "alerts", rows: p.alerts.Endpoints, tasks: func() []tasks.Task {
			return []tasks.Task{
				{Name: "exceptions", Until: tasks.Stopping, Run: func(ctx context.Context) error {
					return p.alerts.WatchExceptions(ctx, p.money.Notices, p.money.Loop.Lead)
				}},
				{Name: "reports", Until: tasks.Stopping, Run: func(ctx context.Context) error { return p.alerts.WatchReports(ctx, p.reports.Weekly) }},
			}
		}},
		{name: "reports", rows: p.reports.Endpoints},
		{name: "snooze", routes: p.keep.Routes},
		{name: "access", routes: p.access.Routes},
		{name: "self-service", routes: p.self.Routes},
		{name: "questions", rows: p.questions.Endpoints, stages: p.estimateStages},
		{
			name: "fleet", rows: p.fleet.Endpoints,
			tasks: func() []tasks.Task { return []tasks.Task{{Name: "fleet", Until: tasks.Drained, Run: p.fleet.Announce}} },
		},
		{name: "platform's description", tasks: func() []tasks.Task {
			return []tasks.Task{{Name: "platform's description", Until: tasks.Stopping, Run: p.follower.Run}}
		}},
		{name: "Envoy", rows: p.envoys.Endpoints},
		{name: "revisions", rows: p.revisions.Endpoints},
		// Deliveries to other systems end first, because the tasks of later features may wait for a store that is down.
		{name: "audit", rows: p.audit.Endpoints, stages: auditStages, tasks: p.audit.Tasks, apply: p.applyAudit},
		{
			name: "decisions", rows: p.decisions.Endpoints, tasks: p.decisions.Tasks,
			apply: func(_, now *state) { p.decisions.Apply(now.Config) },
		},
		p.legacyFeature(),
	}
}

// rowsOf returns the admin API endpoints of all features, in the order of the features.
func rowsOf(features []feature) (out []adminapi.Endpoint) {
	for i := range features {
		if features[i].rows != nil {
			out = append(out, features[i].rows()...)
		}
	}
	return out
}

// sources returns the status of the configuration and of the features' sources.
func (g *Gateway) sources() []telemetry.Source {
	report := g.current.status.Report()
	out := []telemetry.Source{{Kind: "configuration", LastSuccess: report.Loaded, Failed: report.Problem() != ""}}
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

func (p *parts) trafficStages(c *compiled) stages {
	return stages{
		"headers/assign ids":     filter.AssignIDs{},
		"headers/limit size":     filter.LimitSize{},
		"headers/match route":    filter.MatchRoute{Table: c.pipeline.Table, API: p.api, Run: p.runs},
		"headers/check headers":  filter.CheckHeaders{},
		"headers/require route":  filter.RequireRoute{API: p.api, Run: p.runs},
		"body/limit size":        filter.ReadBody{Memory: p.room.Bodies, Keyless: p.room.Keyless},
		"body/answer locally":    filter.AnswerLocally{Answers: c.answers},
		"body/decode body":       filter.DecodeBody{},
		"call/paginate":          filter.Paginate{Upstream: c.account.Upstream},
		"call/build request":     filter.BuildRequest{Agent: userAgent(p.deps.Version)},
		"call/sanitize response": filter.SanitizeResponse{Upstream: c.account.Upstream, Run: c.runs.Client},
		"call/rewrite addresses": c.addresses,
	}
}

func (p *parts) callerStages(c *compiled) stages {
	return stages{
		"headers/authenticate":   filter.Authenticate{Guard: p.counts.Guard, Keyless: c.cfg.Legacy.Keyless.Org},
		"call/strip caller keys": filter.StripCallerKeys{},
		"call/check ownership":   &filter.CheckOwnership{Reader: c.reader},
	}
}

func (p *parts) countStages(*compiled) stages {
	count := filter.RateLimit{Recorder: p.recorder}
	return stages{
		"headers/rate limit": count, "call/rate limit": count,
		"call/recheck rate limit": filter.RecheckRateLimit{Recorder: p.recorder}, "call/fair share": filter.FairShare{},
	}
}

func overloadStages(*compiled) stages {
	return stages{"headers/limit concurrency": filter.LimitConcurrency{}, "body/limit concurrency": filter.LimitConcurrencyByBody{}}
}

func onceStages(*compiled) stages {
	return stages{"call/idempotency": idempotency.Deduplicate{}, "call/recover lost create": idempotency.RecoverLost{}}
}

func (p *parts) policyStages(c *compiled) stages {
	return stages{"call/evaluate policies": &filter.EvaluatePolicies{
		Policies: c.engine, Reads: filter.ReadOperations(p.api), Template: p.api.Operation("getTemplate"),
		Templates: p.api.Operation("listTemplates"),
		Secrets:   p.api.Operation("listSecrets"), Reader: c.reader, Recorder: p.recorder,
	}}
}

func (p *parts) spendStages(c *compiled) stages {
	return stages{
		"call/read labels": filter.Labels{},
		"call/reserve budget": &money.Reserve{
			Reader: c.reader, Workers: p.api.Operation("listEndpointWorkers"),
			Sandbox: p.api.Operation("getSandbox"), Unresolved: p.current.started.Spend.Unresolved,
			Costs: p.money.Ledger.Costs, StreamOptions: money.NewStreamOptions(p.deps.Now),
		},
		"call/measure usage": money.Measure{},
	}
}

func (p *parts) estimateStages(*compiled) stages {
	return stages{"body/dry run": filter.AnswerDryRun{Run: p.questions.Estimate}}
}

func auditStages(*compiled) stages {
	return stages{"call/audit": filter.Audit{}}
}

// newParts creates the components of all features in the order of their dependencies. If there is an error, newParts closes the files that
// it opened.
func newParts(k *kit, cfg *settings.Config) (*parts, error) {
	p := &parts{
		kit: k, scripts: store.NewBatchClient(k.deps.Redis),
		room: filter.NewCapacity(cfg.Run.Memory, cfg.Run.WebSockets, cfg.Overload),
	}
	for _, more := range []func(*settings.Config) error{p.makePolicies, p.makeCallers, p.makeRecords, p.makeMoney, p.makeQuotas, p.makeLegacy, p.makeOperators} {
		if err := more(cfg); err != nil {
			p.close()
			return nil, err
		}
	}
	p.rows = admin.Deps{Ready: p.health.readiness, Metrics: k.deps.Providers.Handler(), Features: rowsOf(p.list())}.Endpoints()
	p.self = selfservice.New(selfservice.Deps{Endpoints: p.rows, Access: p.access, Current: k.current.view, Logger: k.deps.Logger})
	return p, nil
}

// close closes the open files of all parts.
func (p *parts) close() {
	if p.engines != nil {
		p.engines.Close()
	}
	if p.decisions != nil {
		p.decisions.Close()
	}
	if p.audit != nil {
		p.audit.Close()
	}
	if p.money != nil {
		p.money.Journal.Close()
	}
}

// makePolicies creates the policy engines, and the price lists that the policies use.
func (p *parts) makePolicies(cfg *settings.Config) (err error) {
	p.engines = &operator.EngineFactory{Logger: p.deps.Logger, Streams: p.streams, Isolate: p.deps.Isolate, OnNewBundle: p.reconsider}
	p.prices, err = catalog.New(cfg.Catalog, catalog.Deps{Fetch: prices{p.current, p.engines}.fetch, Now: p.deps.Now, Logger: p.deps.Logger})
	if err != nil {
		return fmt.Errorf("catalog: %w", err)
	}
	return nil
}

// prices reads price lists with the credentials in force. When it reads the first list of an organisation, it checks the organisation's
// policies against the list.
type prices struct {
	*current
	policies *operator.EngineFactory
}

// fetch reads the price lists of an organisation.
func (p prices) fetch(ctx context.Context, org string, last *catalog.Snapshot) (catalog.Lists, error) {
	now := p.Load()
	l, err := now.account.Catalog(ctx, org)
	if o := now.Orgs[org]; err == nil && o != nil {
		l = o.Prices.Apply(l)
		if last == nil {
			p.policies.LogUnlisted(o, catalog.NewSnapshot(l, catalog.Rates{}, time.Time{}))
		}
	}
	return l, err
}

// makeCallers creates the key store.
func (p *parts) makeCallers(cfg *settings.Config) error {
	p.keys = callers.New(cfg.Redis.Prefix, callers.Deps{
		Redis: p.deps.Redis, Logger: p.deps.Logger, Current: p.current.view, Streams: p.streams,
		API: p.api, Runs: p.runs, Callers: p.current.callers, Apply: p.changeCallers,
	})
	return nil
}

// makeRecords opens the decision log and the audit log.
func (p *parts) makeRecords(cfg *settings.Config) (err error) {
	p.decisions, err = decisions.New(cfg, decisions.Deps{
		Redis: p.deps.Redis, Logger: p.deps.Logger, Meter: p.meter(), PolicyMeter: p.meterOf("policies"),
		Go: p.background.Go, Stdout: p.deps.Stdout, Additional: p.deps.Decisions, Current: p.current.view, Chain: p.current.chain,
		Draining: p.current.status.Draining(),
	})
	if err == nil {
		p.audit, err = audit.OpenShipping(&cfg.Audit, p.deps.Now, p.deps.Logger, p.deps.Providers, p.meter())
	}
	return err
}

// makeMoney creates the ledger with its alerts, and the tracker of intents.
func (p *parts) makeMoney(cfg *settings.Config) (err error) {
	if p.store, err = redisstore.New(p.deps.Redis, redisstore.Config{Prefix: cfg.Redis.Prefix.Limits(), Recovery: cfg.Limits.Recovery}); err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	p.approvals = approval.NewService(p.scripts, cfg.Redis.Prefix, p.current.view)
	accounts := money.NewAccounts(cfg, p.scripts, p.current.view)
	p.alerts = &alerts.Alerts{
		Current: p.current.view, Logger: p.deps.Logger, Go: p.background.Go, Meter: p.meter(),
		SnoozeLinks: money.SnoozeLinks{Current: p.current.view},
		Approvals:   p.approvals.Store, Notices: accounts, Sent: alerts.NewSentLog(p.deps.Redis, cfg.Redis.Prefix),
	}
	history := money.NewHistory(cfg, accounts)
	p.intents = idempotency.NewTracker(p.scripts, cfg.Redis.Prefix.Intents(), ulid.Make().String(), p.background.Go, p.deps.Logger)
	peers := p.store.Alive
	if cfg.Redis.Embedded {
		peers = nil
	}
	p.intents.SetPeers(p.name, peers)
	p.money = money.New(cfg, p.name, money.Deps{
		Accounts: accounts, Intents: p.intents, RecordAction: p.decisions.RecordOwnAction, Logger: p.deps.Logger,
		Meter: p.meter(), SingleGateway: cfg.Redis.Embedded, Limits: p.store,
		Catalog: p.prices, StateDir: p.deps.State, Audit: p.audit.Log, Alerts: p.alerts.NewThresholds(accounts, history), History: history,
		Current: p.current.view, Account: p.current.account,
	})
	p.operators = callers.Operators{Keys: p.keys, Ledger: p.money.Ledger}
	p.reports = alerts.Reports{Money: p.money, Decisions: p.decisions}
	return nil
}

// makeQuotas creates the rate limiter, and the endpoints that show the rights of callers. The limiter gives the ledger the opportunity to
// detect lost records before the limiter restores counts.
func (p *parts) makeQuotas(cfg *settings.Config) (err error) {
	p.counts, err = operator.NewLimiters(cfg, operator.LimitersDeps{
		Store: money.LossDetector{Store: p.store, Money: p.money}, Now: p.deps.Now, Logger: p.deps.Logger,
		Meter: p.meterOf("ratelimit"), Gateway: p.name,
	})
	if err != nil {
		return err
	}
	p.limits = operator.Limits{Current: p.current.view, Limiter: p.counts.Limiter, Decisions: p.decisions}
	p.health = &health{kit: p.kit, store: p.store, counts: p.counts, catalog: p.prices, money: p.money}
	p.access = callers.NewAccess(callers.AccessDeps{
		API: p.api, Catalog: p.prices, Limiter: p.counts.Limiter, Ledger: p.money.Ledger.Store,
		Engine: &p.engines.InForce, Current: p.current.view,
	})
	p.keep = &money.Snooze{SnoozeLinks: p.alerts.SnoozeLinks, Access: p.access, Updates: filter.UpdateOperations(p.api)}
	return nil
}

// readDescription reads the platform's API description with the configuration in force.
func (p *parts) readDescription(ctx context.Context) ([]byte, error) {
	return p.current.account().Description(ctx)
}

// makeOperators creates the admin endpoints that calls do not need.
func (p *parts) makeOperators(cfg *settings.Config) (err error) {
	p.envoys = envoy.NewServer(envoy.Deps{Logger: p.deps.Logger, Meter: p.meterOf("gateway/envoy"), Now: p.deps.Now})
	p.described = operator.Policies{Current: p.current.view}
	p.drafts = operator.Drafts{Engines: p.engines, Decisions: p.decisions}
	p.questions = &operator.Explainer{
		Current: p.current.view, Compiled: p.current.compiled, Catalog: p.prices, API: p.api,
		Limiter: p.counts.Limiter, Approvals: p.approvals.Store, Ledger: p.money.Ledger,
	}
	p.follower = platform.NewFollower(p.api, p.readDescription, p.deps.Logger, p.meter())
	p.fleet = &operator.Fleet{
		Redis: p.deps.Redis, Key: cfg.Redis.Prefix.Gateways(), Instance: p.name, Version: p.deps.Version, Since: p.deps.Now(),
		Status: &p.current.status, Engines: p.engines, Prices: p.prices, Envoys: p.envoys, Current: p.current.view,
		Backlogs: []operator.Backlog{p.decisions, p.audit}, Unserved: p.follower.Refused,
	}
	p.revisions = &operator.Revisions{
		Journal: operator.NewJournal(p.deps.Redis, cfg.Redis.Prefix), Gateway: p.name, Version: p.deps.Version,
		Current: p.current.view, File: p.deps.File,
	}
	p.overview = operator.OverviewSources{
		Gateways: p.fleet.Gateways, Pending: p.approvals.Pending, Show: p.money.Show, Idle: p.money.Idle,
		Refused: p.decisions.RefusalCounts,
	}
	p.search = operator.Search{Current: p.current.view, Show: p.money.Unscoped, Costs: p.money.Costs, Decision: p.decisions.Find}
	p.fitting = operator.Fitting{Current: p.current.view, Money: p.money, Prices: p.prices}
	return nil
}
