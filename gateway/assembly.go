package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"
	"go.opentelemetry.io/otel/metric"

	"github.com/tollgate-dev/tollgate/gateway/access"
	"github.com/tollgate-dev/tollgate/gateway/alerts"
	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/audit/ship"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/engines"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/fleet"
	"github.com/tollgate-dev/tollgate/gateway/groupcommit"
	"github.com/tollgate-dev/tollgate/gateway/keep"
	"github.com/tollgate-dev/tollgate/gateway/limits"
	"github.com/tollgate-dev/tollgate/gateway/listen"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/oidc"
	"github.com/tollgate-dev/tollgate/gateway/once"
	"github.com/tollgate-dev/tollgate/gateway/overload"
	"github.com/tollgate-dev/tollgate/gateway/platform"
	"github.com/tollgate-dev/tollgate/gateway/questions"
	"github.com/tollgate-dev/tollgate/gateway/retired"
	"github.com/tollgate-dev/tollgate/gateway/revisions"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/tasks"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/gateway/tokens"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/gateway/xds"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/spend"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	"github.com/tollgate-dev/tollgate/translate"
	translatestore "github.com/tollgate-dev/tollgate/translate/redisstore"
)

// New compiles cfg. It neither dials nor listens; Run does.
func New(cfg settings.Config, deps Deps) (_ *Gateway, err error) {
	k, err := newKit(&cfg, deps)
	if err != nil {
		return nil, err
	}
	policies := &engines.Engines{Logger: deps.Logger, Changed: k.streams.Recheck, Isolate: deps.Isolate, Arriving: k.reconsider}
	prices, err := k.newCatalog(policies)
	if err != nil {
		return nil, err
	}
	issuers := oidc.NewKeys(deps.Now, deps.Logger)
	revoked := tokens.New(cfg.Redis.Prefix, tokens.Deps{Redis: deps.Redis, Issuers: issuers, Current: k.view, Streams: k.streams})
	keys := k.newKeys(revoked)
	decided, recorded, err := k.newLogs()
	if err != nil {
		return nil, err
	}
	approvals, links := approval.New(k.scripts, cfg.Redis.Prefix.Approvals()), keep.Links{Current: k.view}
	told, intents, ledger := k.newLedger(prices, decided, recorded, approvals, links)
	defer func() {
		if err != nil {
			closeFiles(policies, recorded, ledger)
		}
	}()
	counts, err := k.newCounts(ledger)
	if err != nil {
		return nil, err
	}
	allowed := k.newAccess(policies, prices, counts, ledger)
	envoys, err := k.newEnvoys()
	if err != nil {
		return nil, err
	}
	follower := platform.NewFollower(k.api, k.readDescription, deps.Logger, k.meter)
	legacy, err := retired.New(cfg.Redis.Prefix, retired.Deps{Redis: deps.Redis, Logger: deps.Logger, Meter: k.meterOf("translate/usage"), Current: k.view})
	if err != nil {
		return nil, err
	}
	g := &Gateway{
		kit: k, health: &health{kit: k, counts: counts, catalog: prices, money: ledger}, counts: counts, catalog: prices, money: ledger, intents: intents,
		alerts: told, approvals: approvals, keys: keys, issuerKeys: issuers, tokens: revoked, retired: legacy, decisions: decided,
		access: allowed, audit: recorded, envoys: envoys, engines: policies,
		keep: &keep.Service{Links: links, Access: allowed, Updates: explain.UpdatesOf(k.api)},
		room: filter.NewRoom(cfg.Run.Memory, cfg.Run.WebSockets), gate: overload.New(cfg.Overload),
		questions: k.newQuestions(prices, ledger, explain.DryRun{Limiter: counts.Limiter, Approvals: approvals}),
		fleet:     k.newFleet(prices, decided, recorded, envoys, follower), follower: follower, revisions: k.newRevisions(), listeners: k.newListeners(), dialects: k.newDialects(ledger),
	}
	telemetry.MeasureGate(k.meter, g.gate)
	sources := g.adminDeps()
	sources.Features = g.operators().rows()
	g.rows = sources.Rows()
	g.features = g.listFeatures()
	telemetry.MeasureSources(k.meter, deps.Now, g.sources)
	if err = g.Swap(cfg); err != nil {
		return nil, err
	}
	return g, nil
}

// kit is what the parts of a gateway are made with.
type kit struct {
	deps       Deps
	cfg        *settings.Config // of the start
	name       string           // among those that share the store
	api        *schema.API
	runs       *schema.API // of the run interface
	meter      metric.Meter
	recorder   *telemetry.Recorder
	store      *redisstore.Store
	scripts    *groupcommit.Client // groups calls to Redis
	background *tasks.Group        // work that may outlive its requests
	tasks      *tasks.Supervisor
	streams    *filter.Streams
	current    *current
	view       *view.Current // of current
}

// newKit makes a kit. Its current has no state yet.
func newKit(cfg *settings.Config, deps Deps) (_ *kit, err error) {
	k := &kit{
		deps: deps, cfg: cfg, name: cmp.Or(cfg.Instance, deps.Instance, rand.Text()), api: deps.API,
		scripts: groupcommit.New(deps.Redis), background: &tasks.Group{Logger: deps.Logger}, current: &current{view: view.New(deps.Now), swapped: make(chan struct{}, 1)},
	}
	k.meter, k.view = k.meterOf("gateway"), k.current.view
	k.tasks = newSupervisor(deps.Logger, k.meter)
	k.streams = filter.NewStreams(func(s filter.Stream) (time.Duration, bool) { return k.current.allows(s, deps.Now()) })
	if k.api == nil {
		if k.api, err = schema.Load(); err != nil {
			return nil, err
		}
	}
	if k.runs, err = schema.LoadRun(); err != nil {
		return nil, err
	}
	if k.recorder, err = telemetry.NewRecorder(deps.Logger, deps.Providers.Tracer(), deps.Providers.Meter(), deps.Now); err != nil {
		return nil, err
	}
	if k.store, err = redisstore.New(deps.Redis, redisstore.Config{Prefix: cfg.Redis.Prefix.Limits(), Recovery: cfg.Limits.Recovery}); err != nil {
		return nil, fmt.Errorf("limits: %w", err)
	}
	return k, nil
}

// meterOf returns the meter of the instruments of a package.
func (k *kit) meterOf(pkg string) metric.Meter {
	return k.deps.Providers.Meter().Meter("github.com/tollgate-dev/tollgate/" + pkg)
}

// newCatalog makes the price lists.
func (k *kit) newCatalog(policies *engines.Engines) (*catalog.Catalog, error) {
	c, err := catalog.New(k.cfg.Catalog, catalog.Deps{Fetcher: prices{k.current, policies}, Now: k.deps.Now, Logger: k.deps.Logger})
	if err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	return c, nil
}

// prices reads price lists with the credentials in force. It holds the first list of an organisation against its policies, which were loaded
// before.
type prices struct {
	*current
	policies *engines.Engines
}

// Lists implements catalog.Fetcher.
func (p prices) Lists(ctx context.Context, org string, last *catalog.Snapshot) (catalog.Lists, error) {
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

// newKeys makes the keys of callers.
func (k *kit) newKeys(revoked *tokens.Tokens) *callers.Keys {
	return callers.New(k.cfg.Redis.Prefix, callers.Deps{
		Redis: k.deps.Redis, Logger: k.deps.Logger, Tokens: revoked, Current: k.view,
		API: k.api, Runs: k.runs, Callers: k.current.callers, Apply: k.changeCallers,
	})
}

// newLogs opens the logs of decisions and of changes.
func (k *kit) newLogs() (*decisions.Decisions, *ship.Shipping, error) {
	decided, err := decisions.New(k.cfg, decisions.Deps{
		Redis: k.deps.Redis, Now: k.deps.Now, Logger: k.deps.Logger, Meter: k.meter, PolicyMeter: k.meterOf("policies"),
		Go: k.background.Go, Stdout: k.deps.Stdout, Also: k.deps.Decisions, Current: k.view, Chain: k.current.chain, Draining: k.current.status.Drains(),
	})
	if err != nil {
		return nil, nil, err
	}
	recorded, err := ship.Open(&k.cfg.Audit, k.deps.Now, k.deps.Logger, k.deps.Providers, k.meter)
	return decided, recorded, err
}

// newLedger makes the ledger, with the alerts that follow from it and the desk of calls that must not be made twice.
func (k *kit) newLedger(prices *catalog.Catalog, decided *decisions.Decisions, recorded *ship.Shipping, approvals *approval.Store, links keep.Links) (*alerts.Alerts, *once.Desk, *money.Money) {
	accounts := money.NewAccounts(k.cfg, k.scripts, k.view)
	told := &alerts.Alerts{
		Current: k.view, Logger: k.deps.Logger, Now: k.deps.Now, Go: k.background.Go, Meter: k.meter, KeepLinks: links,
		Approvals: approvals, Notices: accounts, Told: alerts.NewTold(k.deps.Redis, k.cfg.Redis.Prefix),
	}
	history := money.NewHistory(k.cfg, accounts)
	self := spend.Holder{Incarnation: ulid.Make().String(), Gateway: cmp.Or(k.cfg.Instance, k.deps.Instance)}
	intents := once.NewDesk(k.scripts, k.cfg.Redis.Prefix.Intents(), self.Incarnation, k.background.Go, k.deps.Logger)
	peers := k.store.Alive
	if k.cfg.Redis.Embedded {
		peers = nil
	}
	intents.Follow(k.name, peers)
	return told, intents, money.New(k.cfg, self, money.Deps{
		Accounts: accounts, Intents: intents, Did: decided.Did, Now: k.deps.Now, Logger: k.deps.Logger, Meter: k.meter, Gateway: k.name, Alone: k.cfg.Redis.Embedded, Limits: k.store,
		Catalog: prices, State: k.deps.State, Audit: recorded.Log, Alerts: told.NewThresholds(accounts, history), History: history, Job: k.current.job, Current: k.view, Account: k.current.account,
	})
}

// newCounts makes the counters of calls. They prove which ledgers the store has lost before they restore their counts.
func (k *kit) newCounts(ledger *money.Money) (*limits.Counts, error) {
	return limits.New(k.cfg, limits.Deps{
		Store: money.Proving{Store: k.store, Prove: ledger.Prove}, Now: k.deps.Now, Logger: k.deps.Logger, Meter: k.meterOf("ratelimit"), Gateway: k.name,
	})
}

// newAccess makes the answers about what callers may do.
func (k *kit) newAccess(policies *engines.Engines, prices *catalog.Catalog, counts *limits.Counts, ledger *money.Money) *access.Access {
	return access.New(access.Deps{
		API: k.api, Catalog: prices, Limiter: counts.Limiter, Ledger: ledger.Ledger.Store,
		Engine: &policies.InForce, Current: k.view,
	})
}

// newQuestions makes the answers about hypothetical requests, by dry runs that begin as dry.
func (k *kit) newQuestions(prices *catalog.Catalog, ledger *money.Money, dry explain.DryRun) *questions.Questions {
	dry.Reads, dry.Ledger, dry.Now = filter.ReadsOf(k.api), ledger.Ledger, k.deps.Now
	return &questions.Questions{
		Current: k.view, DryRun: func() (*explain.DryRun, error) { return k.current.dryRun(dry) }, Account: k.current.account,
		Catalog: prices, API: k.api, Now: k.deps.Now,
	}
}

// newEnvoys makes the server of configurations for Envoys.
func (k *kit) newEnvoys() (*xds.Server, error) {
	return xds.NewServer(xds.Deps{
		Logger: k.deps.Logger, Meter: k.meterOf("gateway/xds"), Now: k.deps.Now,
	})
}

// newFleet makes the list of the gateways that share the store.
func (k *kit) newFleet(prices *catalog.Catalog, decided *decisions.Decisions, recorded *ship.Shipping, envoys *xds.Server, follower *platform.Follower) *fleet.Fleet {
	return &fleet.Fleet{
		Redis: k.deps.Redis, Key: k.cfg.Redis.Prefix.Running(), Instance: k.name, Version: k.deps.Version, Since: k.deps.Now(),
		Status: &k.current.status, Policies: func() []engines.PolicyStatus { return engines.Status(k.current.engine(), k.view.Org, prices) },
		Envoys: func() int { return len(envoys.Nodes()) }, Groups: envoys.Groups, Current: k.view,
		Undelivered: func() []string { return slices.Concat(decided.Undelivered(), recorded.Undelivered()) }, Unserved: follower.Refused,
	}
}

// readDescription reads the platform's description with the configuration in force.
func (k *kit) readDescription(ctx context.Context) ([]byte, error) {
	return k.current.account().Description(ctx)
}

// newRevisions makes the list of the configurations that were in force.
func (k *kit) newRevisions() *revisions.Revisions {
	return &revisions.Revisions{
		Journal: revisions.NewJournal(k.deps.Redis, k.cfg.Redis.Prefix), Gateway: k.name, Version: k.deps.Version, Current: k.view,
		File: k.deps.File,
	}
}

// newListeners makes the listeners for callers and operators.
func (k *kit) newListeners() *listen.Listeners {
	ls := &listen.Listeners{Current: k.view, Logger: k.deps.Logger, Recorder: k.recorder}
	ls.Measure(k.meter, k.current.revocations)
	return ls
}

// newDialects makes what the translators of v1 and GraphQL work with.
func (k *kit) newDialects(ledger *money.Money) translate.Deps {
	d := translate.Deps{
		Now: k.deps.Now, Sleep: k.deps.Sleep, Store: translatestore.New(k.scripts, k.cfg.Redis.Prefix.Legacy()), Logger: k.deps.Logger, Counted: ledger.GPUs,
	}
	return d.WithDefaults()
}
