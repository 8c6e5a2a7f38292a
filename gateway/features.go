package gateway

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/alerts"
	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/idempotency"
	"github.com/tollgate-dev/tollgate/gateway/legacy"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/gateway/overload"
	"github.com/tollgate-dev/tollgate/gateway/platform"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/selfservice"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/gateway/tasks"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
)

// chainOrder is the order of the chain, by the names of stages. Cheap before dear, identity before quota, quota before bodies; size before
// everything.
func chainOrder() (order struct{ Head, Content, Call []string }) {
	order.Head = []string{"Stamp", "Size", "Match", "Wire", "Identify", "Legacy", "Admit", "Count", "Routed"}
	order.Content = []string{"Receive", "Estimate", "Local", "Decode", "AdmitBody", "Brownout", "Translate"}
	order.Call = []string{
		"Count", "OwnKeys", "Labels", "Repeats", "Ownership", "Judge", "Pages", "Recount", "Reserve", "Audit", "Rebuild", "Relay", "Measure",
		"Addresses", "Lookup", "Share",
	}
	return order
}

// feature is a part of the gateway. All fields but the name may be nil.
type feature struct {
	name string
	// rows are the questions of operators. They can be described without a gateway.
	rows func() []row.Row
	// routes are the routes of v2 that the feature answers itself, with answers by the id of the route.
	routes  func() []route.Route
	answers func() map[string]filter.Responder
	// compile adds to a configuration what the stages and the effects of the feature need. It changes nothing else.
	compile func(c *compiled) error
	// stages returns filters by the names of their stages, which chainOrder lists. It is called for each configuration, after compile of all features.
	stages func(c *compiled) stages
	// tasks live as long as the process. Tasks that live until Drained or Ended end in the order of the features.
	tasks func() []tasks.Task
	// apply follows a state that was put in force; before is nil for the first.
	apply func(before, now *state)
	// sources reports on what the feature works from and keeps looking at.
	sources func() []telemetry.Source
}

// parts are the values of features. Those of the zero value describe their rows.
type parts struct {
	*kit
	scripts   *store.BatchClient // groups calls to Redis
	store     *redisstore.Store  // of counts
	rows      []row.Row          // of the operators' listener
	health    *health
	engines   *operator.Engines
	drafts    operator.Drafts
	prices    *catalog.Catalog
	keys      *callers.Keys
	operators callers.Operators
	decisions *decisions.Decisions
	audit     *audit.Shipping
	approvals approval.Answers
	alerts    *alerts.Alerts
	reports   alerts.Reports
	intents   *idempotency.Tracker
	money     *money.Money
	counts    *operator.Counts
	limits    operator.Limits
	room      filter.Capacity
	gate      *overload.Gate
	access    *callers.Access
	keep      *money.Snooze
	self      *selfservice.Service
	envoys    *envoy.Server
	legacy    *legacy.Calls
	questions *operator.Questions
	follower  *platform.Follower
	fleet     *operator.Fleet
	revisions *operator.Revisions
	overview  operator.Sources
}

// list lists the features.
func (p *parts) list() []feature {
	return []feature{
		{name: "traffic", compile: p.compileTraffic, stages: p.trafficStages, apply: p.applyTelemetry, tasks: func() []tasks.Task {
			return []tasks.Task{{Name: "work behind answers", Until: tasks.Drained, Run: tasks.UntilDone, Drain: p.drainBackground}}
		}},
		{name: "overview", rows: p.overview.Rows},
		{name: "spending", rows: p.money.Rows, compile: p.compileSpending, stages: p.spendStages, tasks: func() []tasks.Task {
			return []tasks.Task{
				{Name: "outbox", Until: tasks.Drained, Run: p.money.Outbox.Run, Drain: p.drainLedger},
				{Name: "ledger images", Until: tasks.Drained, Run: p.money.Watcher.Run},
				{Name: "journal of owners", Until: tasks.Drained, Run: p.money.Journal.Run},
				{Name: "ledger warnings", Until: tasks.Stopping, Run: tasks.NoError(p.money.WarnAboutDurability)},
				{Name: "reconciler", Until: tasks.Stopping, Run: p.money.Loop.Run},
			}
		}},
		{name: "quotas", rows: p.limits.Rows, compile: p.compileQuotas, stages: p.countStages, tasks: func() []tasks.Task {
			return []tasks.Task{
				{Name: "limiter", Until: tasks.Drained, Run: p.counts.Run}, // permits drawn while the doors drain are given back, too
				{Name: "store check", Until: tasks.Drained, Run: p.health.watchStore},
			}
		}},
		{name: "overload", compile: p.compileOverload, stages: overloadStages},
		{name: "idempotency", compile: p.compileIntents, stages: onceStages, tasks: func() []tasks.Task {
			return []tasks.Task{{Name: "intents", Until: tasks.Drained, Run: p.intents.Run}}
		}},
		{name: "approvals", rows: p.approvals.Rows, compile: p.compileApprovals},
		{
			name: "callers", rows: p.operators.Rows, routes: callers.Routes, answers: p.keys.Answers, compile: p.compileCallers, stages: p.callerStages,
			apply: p.applyCallers, sources: p.keySources, tasks: func() []tasks.Task {
				return []tasks.Task{
					{Name: "issuer keys", Until: tasks.Drained, Run: tasks.NoError(p.keys.Tokens.Issuers().Run)},
					{Name: "keys", Until: tasks.Drained, Run: tasks.NoError(p.keys.Run)}, // keys are revoked while the doors drain, too
				}
			},
		},
		{name: "prices", compile: p.compilePrices, apply: p.applyPrices, sources: p.priceSources, tasks: func() []tasks.Task {
			return []tasks.Task{{Name: "catalog", Until: tasks.Stopping, Run: func(ctx context.Context) error { return p.prices.Run(ctx, orgIDs(p.current.view.Config())...) }}}
		}},
		{
			name: "policies", rows: p.drafts.Rows, compile: p.compilePolicies, stages: p.policyStages, apply: p.applyPolicies, sources: p.bundleSources,
			tasks: func() []tasks.Task { return []tasks.Task{{Name: "policies", Until: tasks.Stopping, Run: p.follow}} },
		},
		{name: "alerts", rows: p.alerts.Rows, tasks: func() []tasks.Task {
			return []tasks.Task{
				{Name: "exceptions", Until: tasks.Stopping, Run: func(ctx context.Context) error {
					return p.alerts.WatchExceptions(ctx, p.money.Notices, p.money.Loop.Lead)
				}},
				{Name: "reports", Until: tasks.Stopping, Run: func(ctx context.Context) error { return p.alerts.WatchReports(ctx, p.reports.Weekly) }},
			}
		}},
		{name: "reports", rows: p.reports.Rows},
		{name: "keep", routes: money.SnoozeRoutes, answers: p.keep.Answers},
		{name: "access", routes: callers.AccessRoutes, answers: p.access.Answers},
		{name: "reference", answers: p.referenceAnswers},
		{name: "self-service", routes: selfservice.Routes, answers: p.self.Answers},
		{name: "questions", rows: p.questions.Rows, stages: p.estimateStages},
		{name: "fleet", rows: p.fleet.Rows, tasks: func() []tasks.Task { return []tasks.Task{{Name: "fleet", Until: tasks.Drained, Run: p.fleet.Announce}} }},
		{name: "platform's description", tasks: func() []tasks.Task {
			return []tasks.Task{{Name: "platform's description", Until: tasks.Stopping, Run: p.follower.Run}}
		}},
		{name: "Envoy", rows: p.envoys.Rows},
		{name: "revisions", rows: p.revisions.Rows},
		// What is delivered to others ends first: the counts after it wait for a store that may be away.
		{name: "audit", rows: p.audit.Rows, compile: p.compileAudit, stages: auditStages, tasks: p.audit.Tasks, apply: p.applyAudit},
		{
			name: "decisions", rows: p.decisions.Rows, compile: p.compileDecisions, tasks: p.decisions.Tasks,
			apply: func(_, now *state) { p.decisions.Apply(now.Config) },
		},
		{name: "legacy", rows: p.legacy.Rows, compile: p.compileLegacy, stages: p.legacyStages, tasks: p.legacy.Tasks},
	}
}

// rowsOf lists the rows of features, in their order.
func rowsOf(features []feature) (out []row.Row) {
	for i := range features {
		if features[i].rows != nil {
			out = append(out, features[i].rows()...)
		}
	}
	return out
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

func (p *parts) trafficStages(c *compiled) stages {
	return stages{
		"Head.Stamp":      filter.AssignIDs{},
		"Head.Size":       filter.LimitSize{},
		"Head.Match":      filter.MatchRoute{Table: c.table, API: p.api, Run: p.runs},
		"Head.Wire":       filter.CheckHeaders{},
		"Head.Routed":     filter.RequireRoute{API: p.api, Run: p.runs},
		"Content.Receive": filter.ReadBody{Memory: p.room.Bodies, Keyless: p.room.Keyless},
		"Content.Local":   filter.AnswerLocally{Answers: c.answers},
		"Content.Decode":  filter.DecodeBody{},
		"Call.Pages":      filter.Paginate{Upstream: c.account.Upstream},
		"Call.Rebuild":    filter.BuildRequest{Agent: userAgent(p.deps.Version)},
		"Call.Relay":      filter.FilterResponse{Upstream: c.account.Upstream, Run: c.runs.Client},
		"Call.Addresses":  c.addresses,
	}
}

func (p *parts) callerStages(c *compiled) stages {
	return stages{
		"Head.Identify":  filter.Authenticate{Guard: p.counts.Guard, Keyless: c.cfg.Legacy.Keyless.Org},
		"Call.OwnKeys":   filter.StripCallerKeys{},
		"Call.Ownership": &filter.CheckOwnership{Reader: c.reader},
	}
}

func (p *parts) countStages(*compiled) stages {
	count := filter.RateLimit{Recorder: p.recorder}
	return stages{"Head.Count": count, "Call.Count": count, "Call.Recount": filter.RecheckRateLimit{Recorder: p.recorder}, "Call.Share": filter.FairShare{}}
}

func overloadStages(c *compiled) stages {
	priorities := filter.Priorities{Names: c.legacy.Namers(), PriorityOf: c.legacy.Urgency()}
	return stages{"Head.Admit": filter.LimitConcurrency{Priorities: priorities}, "Content.AdmitBody": filter.LimitConcurrencyByBody{Priorities: priorities}}
}

func (p *parts) legacyStages(c *compiled) stages {
	return stages{
		"Head.Legacy":       filter.RecordLegacyUse{Names: c.legacy.Namers()},
		"Content.Brownout":  filter.Brownout{},
		"Content.Translate": &filter.Translate{API: p.api, Lists: p.room.Lists},
	}
}

func onceStages(*compiled) stages {
	return stages{"Call.Repeats": idempotency.Deduplicate{}, "Call.Lookup": idempotency.RecoverLost{}}
}

func (p *parts) policyStages(c *compiled) stages {
	return stages{"Call.Judge": &filter.EvaluatePolicies{
		Policies: c.engine, Reads: filter.ReadOperations(p.api), Template: p.api.Operation("getTemplate"), Templates: p.api.Operation("listTemplates"),
		Secrets: p.api.Operation("listSecrets"), Reader: c.reader, Recorder: p.recorder,
	}}
}

func (p *parts) spendStages(c *compiled) stages {
	return stages{
		"Call.Labels":  filter.Labels{},
		"Call.Reserve": &money.Reserve{Reader: c.reader, Workers: p.api.Operation("listEndpointWorkers"), Sandbox: p.api.Operation("getSandbox"), Unresolved: p.current.started.Spend.Unresolved, Costs: p.money.Ledger.Costs, StreamOptions: c.refusing},
		"Call.Measure": money.Measure{},
	}
}

func (p *parts) estimateStages(*compiled) stages {
	return stages{"Content.Estimate": filter.AnswerDryRun{Run: p.questions.AnswerEstimate}}
}

func auditStages(*compiled) stages {
	return stages{"Call.Audit": filter.Audit{}}
}

// newParts makes the values of features, in the order in which they need each other. On an error, the files that were opened are closed.
func newParts(k *kit, cfg *settings.Config) (*parts, error) {
	p := &parts{kit: k, scripts: store.NewBatchClient(k.deps.Redis), room: filter.NewCapacity(cfg.Run.Memory, cfg.Run.WebSockets), gate: overload.New(cfg.Overload)}
	for _, more := range []func(*settings.Config) error{p.makePolicies, p.makeCallers, p.makeRecords, p.makeMoney, p.makeQuotas, p.makeLegacy, p.makeOperators} {
		if err := more(cfg); err != nil {
			p.close()
			return nil, err
		}
	}
	p.rows = admin.Deps{Ready: p.health.readiness, Metrics: k.deps.Providers.Handler(), Features: rowsOf(p.list())}.Rows()
	p.self = selfservice.New(selfservice.Deps{Rows: p.rows, Access: p.access, Current: k.current.view, Logger: k.deps.Logger})
	return p, nil
}

// close closes the parts that have files open.
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

// makePolicies makes the engines of policies, and the price lists that they judge by.
func (p *parts) makePolicies(cfg *settings.Config) (err error) {
	p.engines = &operator.Engines{Logger: p.deps.Logger, Changed: p.streams.Recheck, Isolate: p.deps.Isolate, Arriving: p.reconsider}
	p.prices, err = catalog.New(cfg.Catalog, catalog.Deps{Fetch: prices{p.current, p.engines}.fetch, Now: p.deps.Now, Logger: p.deps.Logger})
	if err != nil {
		return fmt.Errorf("catalog: %w", err)
	}
	return nil
}

// prices reads price lists with the credentials in force. It holds the first list of an organisation against its policies, which were loaded
// before.
type prices struct {
	*current
	policies *operator.Engines
}

// fetch reads the lists of an organisation.
func (p prices) fetch(ctx context.Context, org string, last *catalog.Snapshot) (catalog.Lists, error) {
	now := p.Load()
	l, err := now.account.Catalog(ctx, org)
	if o := now.Orgs[org]; err == nil && o != nil {
		l = o.Prices.Apply(l)
		if last == nil {
			p.policies.TellUnlisted(o, catalog.NewSnapshot(l, catalog.Rates{}, time.Time{}))
		}
	}
	return l, err
}

// makeCallers makes the keys of callers.
func (p *parts) makeCallers(cfg *settings.Config) error {
	p.keys = callers.New(cfg.Redis.Prefix, callers.Deps{
		Redis: p.deps.Redis, Logger: p.deps.Logger, Current: p.current.view, Streams: p.streams,
		API: p.api, Runs: p.runs, Callers: p.current.callers, Apply: p.changeCallers,
	})
	return nil
}

// makeRecords opens the logs of decisions and of changes.
func (p *parts) makeRecords(cfg *settings.Config) (err error) {
	p.decisions, err = decisions.New(cfg, decisions.Deps{
		Redis: p.deps.Redis, Now: p.deps.Now, Logger: p.deps.Logger, Meter: p.meter(), PolicyMeter: p.meterOf("policies"),
		Go: p.background.Go, Stdout: p.deps.Stdout, Also: p.deps.Decisions, Current: p.current.view, Chain: p.current.chain, Draining: p.current.status.Drains(),
	})
	if err == nil {
		p.audit, err = audit.OpenShipping(&cfg.Audit, p.deps.Now, p.deps.Logger, p.deps.Providers, p.meter())
	}
	return err
}

// makeMoney makes the ledger, with the alerts that follow from it and the desk of calls that must not be made twice.
func (p *parts) makeMoney(cfg *settings.Config) (err error) {
	if p.store, err = redisstore.New(p.deps.Redis, redisstore.Config{Prefix: cfg.Redis.Prefix.Limits(), Recovery: cfg.Limits.Recovery}); err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	p.approvals = approval.NewAnswers(p.scripts, cfg.Redis.Prefix, p.current.view)
	accounts := money.NewAccounts(cfg, p.scripts, p.current.view)
	p.alerts = &alerts.Alerts{
		Current: p.current.view, Logger: p.deps.Logger, Now: p.deps.Now, Go: p.background.Go, Meter: p.meter(), SnoozeLinks: money.SnoozeLinks{Current: p.current.view},
		Approvals: p.approvals.Store, Notices: accounts, Sent: alerts.NewSentLog(p.deps.Redis, cfg.Redis.Prefix),
	}
	history := money.NewHistory(cfg, accounts)
	self := ledger.Holder{Incarnation: ulid.Make().String(), Gateway: p.name}
	p.intents = idempotency.NewTracker(p.scripts, cfg.Redis.Prefix.Intents(), self.Incarnation, p.background.Go, p.deps.Logger)
	peers := p.store.Alive
	if cfg.Redis.Embedded {
		peers = nil
	}
	p.intents.SetPeers(p.name, peers)
	p.money = money.New(cfg, self, money.Deps{
		Accounts: accounts, Intents: p.intents, RecordAction: p.decisions.Did, Now: p.deps.Now, Logger: p.deps.Logger, Meter: p.meter(), SingleGateway: cfg.Redis.Embedded, Limits: p.store,
		Catalog: p.prices, StateDir: p.deps.State, Audit: p.audit.Log, Alerts: p.alerts.NewThresholds(accounts, history), History: history, Job: p.current.job, Current: p.current.view, Account: p.current.account,
	})
	p.operators = callers.Operators{Keys: p.keys, Ledger: p.money.Ledger}
	p.reports = alerts.Reports{Money: p.money, Decisions: p.decisions}
	return nil
}

// makeQuotas makes the counters of calls, which prove which ledgers the store has lost before they restore their counts, and the answers about
// what callers may do.
func (p *parts) makeQuotas(cfg *settings.Config) (err error) {
	p.counts, err = operator.NewCounts(cfg, operator.CountsDeps{
		Store: money.LossDetector{Store: p.store, Detect: p.money.DetectLosses}, Now: p.deps.Now, Logger: p.deps.Logger, Meter: p.meterOf("ratelimit"), Gateway: p.name,
	})
	if err != nil {
		return err
	}
	p.limits = operator.Limits{Current: p.current.view, Limiter: p.counts.Limiter}
	p.health = &health{kit: p.kit, store: p.store, counts: p.counts, catalog: p.prices, money: p.money}
	p.access = callers.NewAccess(callers.AccessDeps{
		API: p.api, Catalog: p.prices, Limiter: p.counts.Limiter, Ledger: p.money.Ledger.Store, Engine: &p.engines.InForce, Current: p.current.view,
	})
	p.keep = &money.Snooze{SnoozeLinks: p.alerts.SnoozeLinks, Access: p.access, Updates: explain.UpdatesOf(p.api)}
	return nil
}

// makeLegacy makes what the translators of v1 and GraphQL work with, and the notes of their callers.
func (p *parts) makeLegacy(cfg *settings.Config) (err error) {
	p.legacy, err = legacy.New(cfg.Redis.Prefix, legacy.Deps{
		Redis: p.deps.Redis, Records: p.scripts, Logger: p.deps.Logger, Meter: p.meterOf("translate/usage"), Current: p.current.view,
		Sleep: p.deps.Sleep, LedgerTypes: p.money.GPUs,
	})
	return err
}

// readDescription reads the platform's description with the configuration in force.
func (p *parts) readDescription(ctx context.Context) ([]byte, error) {
	return p.current.account().Description(ctx)
}

// makeOperators makes the answers to operators that no call depends on.
func (p *parts) makeOperators(cfg *settings.Config) (err error) {
	if p.envoys, err = envoy.NewServer(envoy.Deps{Logger: p.deps.Logger, Meter: p.meterOf("gateway/envoy"), Now: p.deps.Now}); err != nil {
		return err
	}
	p.drafts = operator.Drafts{Engine: p.current.engine, Log: p.decisions.WriteLog, Isolate: p.deps.Isolate}
	dry := explain.DryRun{Limiter: p.counts.Limiter, Approvals: p.approvals.Store, Reads: filter.ReadOperations(p.api), Ledger: p.money.Ledger, Now: p.deps.Now}
	p.questions = &operator.Questions{
		Current: p.current.view, DryRun: func() (*explain.DryRun, error) { return p.current.dryRun(dry) }, Account: p.current.account,
		Catalog: p.prices, API: p.api, Now: p.deps.Now,
	}
	p.follower = platform.NewFollower(p.api, p.readDescription, p.deps.Logger, p.meter())
	p.fleet = &operator.Fleet{
		Redis: p.deps.Redis, Key: cfg.Redis.Prefix.Gateways(), Instance: p.name, Version: p.deps.Version, Since: p.deps.Now(),
		Status: &p.current.status, Policies: func() []operator.PolicyStatus {
			return operator.Status(p.current.engine(), p.current.view.Org, p.prices)
		},
		Envoys: func() int { return len(p.envoys.Nodes()) }, Groups: p.envoys.Groups, Current: p.current.view,
		Undelivered: func() []string { return slices.Concat(p.decisions.Undelivered(), p.audit.Undelivered()) }, Unserved: p.follower.Refused,
	}
	p.revisions = &operator.Revisions{
		Journal: operator.NewJournal(p.deps.Redis, cfg.Redis.Prefix), Gateway: p.name, Version: p.deps.Version, Current: p.current.view, File: p.deps.File,
	}
	p.overview = operator.Sources{Gateways: p.fleet.Gateways, Pending: p.approvals.Pending, Show: p.money.Show, Idle: p.money.Idle, Refused: p.decisions.Refused}
	return nil
}
