package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/alerts"
	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/approval/answers"
	"github.com/tollgate-dev/tollgate/gateway/audit/ship"
	"github.com/tollgate-dev/tollgate/gateway/billtypes"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/dialects"
	"github.com/tollgate-dev/tollgate/gateway/engines"
	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/extproc"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/fleet"
	"github.com/tollgate-dev/tollgate/gateway/groupcommit"
	"github.com/tollgate-dev/tollgate/gateway/keep"
	"github.com/tollgate-dev/tollgate/gateway/limits"
	"github.com/tollgate-dev/tollgate/gateway/listen"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/oidc"
	"github.com/tollgate-dev/tollgate/gateway/overload"
	"github.com/tollgate-dev/tollgate/gateway/platform"
	"github.com/tollgate-dev/tollgate/gateway/questions"
	"github.com/tollgate-dev/tollgate/gateway/retired"
	"github.com/tollgate-dev/tollgate/gateway/reverseproxy"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/tasks"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/gateway/tenants"
	"github.com/tollgate-dev/tollgate/gateway/tokens"
	"github.com/tollgate-dev/tollgate/gateway/ui"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/gateway/wire"
	"github.com/tollgate-dev/tollgate/gateway/xds"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/spend"
	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/ratelimit/metrics"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	"github.com/tollgate-dev/tollgate/translate"
	translatestore "github.com/tollgate-dev/tollgate/translate/redisstore"
)

// Deps are the live things a Gateway works with. All are required but API and
// the listeners.
type Deps struct {
	// Redis counts and remembers. It must not retry by itself; redisstore.Options
	// makes one that does not.
	Redis  redis.UniversalClient
	Logger *slog.Logger
	// LogLevel is set to the level of each configuration that is put in force; nil is not.
	LogLevel  *slog.LevelVar
	Providers *telemetry.Providers
	Now       func() time.Time
	// Sleep waits between two calls of the translators; nil means a timer. See
	// translate.Deps.
	Sleep   func(ctx context.Context, d time.Duration) error
	Version string
	// Instance names the gateway among those that share the store, unless the
	// configuration does; empty is a random name.
	Instance string
	// Stdout is where a decision log on standard output goes; nil has none.
	Stdout io.Writer
	// Decisions records each decision, besides the configured log; nil records none.
	Decisions filter.Decisions
	// API is the v2 API's description; nil loads the embedded one.
	API *schema.API
	// Data, Admin and Envoy are used instead of the configured addresses when
	// not nil.
	Data, Admin, Envoy net.Listener
	// Serving is called once all listeners are open; nil is not.
	Serving func()
}

// keylessMemory bounds the bodies of callers without a key that are under way, in
// bytes: 160 of the largest.
const keylessMemory = 16 << 20

// Gateway is a running tollgate.
type Gateway struct {
	deps         Deps
	name         string // among those that share the store
	api          *schema.API
	runs         *schema.API    // of the run interface
	bodies       *filter.Memory // of the run interface
	keyless      *filter.Memory // of callers without a key
	webSockets   *semaphore.Weighted
	gate         *overload.Gate
	recorder     *telemetry.Recorder
	store        *redisstore.Store
	scripts      *groupcommit.Client // groups calls to Redis
	limiter      *ratelimit.Limiter
	limitMetrics *metrics.Instruments
	guard        *filter.Guard
	attempts     *ratelimit.AddressLimiter // wrong admin tokens
	shares       *ratelimit.Upstream
	catalog      *catalog.Catalog
	dialects     translate.Deps
	late         tasks.Group // creates that outlived their requests
	money        *money.Money
	alerts       *alerts.Alerts
	billTypes    *billtypes.Types
	keep         *keep.Keep
	approvals    *approval.Store
	keys         *callers.Keys
	issuerKeys   *oidc.Keys
	tokens       *tokens.Tokens
	retired      *retired.Calls
	streams      *filter.Streams
	decisions    *decisions.Decisions
	questions    *questions.Questions
	fleet        *fleet.Fleet
	audit        *ship.Shipping
	envoys       *xds.Server
	listeners    *listen.Listeners
	engines      *engines.Engines
	current      atomic.Pointer[state]
	swapped      chan struct{} // tells Run of a new state
	status       *admin.Status

	changing sync.Mutex       // held while current is swapped; guards the fields below
	started  *settings.Config // of the process: settings that require a restart are compared with it
	closed   bool
}

// state is one compiled configuration. It is immutable.
type state struct {
	config   *settings.Config
	callers  *callers.Callers
	pipeline *filter.Pipeline
	reader   *filter.Reader
	client   *upstream.Client
	runs     platform.Runs
	engine   *policies.Engine
	// moves maps operations of v1 to those of v2 that take their place.
	moves  map[string][]string
	zones  map[string]spend.Zone // by organisation
	admins *admin.Directory
	loaded time.Time
}

// New compiles cfg. It neither dials nor listens; Run does.
func New(cfg settings.Config, deps Deps) (*Gateway, error) {
	g := &Gateway{deps: deps, api: deps.API, swapped: make(chan struct{}, 1), status: new(admin.Status)}
	var err error
	if g.api == nil {
		if g.api, err = schema.Load(); err != nil {
			return nil, err
		}
	}
	if g.runs, err = schema.LoadRun(); err != nil {
		return nil, err
	}
	g.bodies, g.keyless = filter.NewMemory(cfg.Run.Memory), filter.NewMemory(keylessMemory)
	g.webSockets = semaphore.NewWeighted(cfg.Run.WebSockets)
	g.gate = overload.New(cfg.Overload)
	measureGate(g.meter(), g.gate)
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
	g.late.Logger = deps.Logger
	g.dialects = translate.Deps{Now: deps.Now, Sleep: deps.Sleep, Store: translatestore.New(g.scripts, cfg.Redis.Prefix.Legacy()), Logger: deps.Logger}.WithDefaults()
	g.streams = filter.NewStreams(g.streamAllowed)
	g.engines = &engines.Engines{Logger: deps.Logger, Changed: g.streams.Recheck}
	g.issuerKeys = oidc.NewKeys(deps.Now, deps.Logger)
	g.keys = callers.New(cfg.Redis.Prefix, callers.Deps{
		Redis: deps.Redis, Now: deps.Now, Logger: deps.Logger, Issuers: g.issuerKeys, Config: g.config, Apply: g.applyKeys,
		Tokens:  func(ctx context.Context) error { return g.tokens.Refresh(ctx) },
		Tenants: func(cfg *settings.Config) (map[string]*filter.Tenant, error) { return tenants.New(cfg, g.api, g.runs) },
		Callers: func() *callers.Callers { return g.current.Load().callers },
	})
	g.tokens = tokens.New(cfg.Redis.Prefix, tokens.Deps{Redis: deps.Redis, Issuers: g.issuerKeys, Now: deps.Now, Config: g.config, Changed: g.streams.Recheck})
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
		Config: g.config, Moves: func() map[string][]string { return g.current.Load().moves },
	})
	if err != nil {
		return nil, err
	}
	g.billTypes = billtypes.New(billtypes.Deps{
		Dialects: g.dialects, Go: g.late.Go, Now: deps.Now, Catalog: g.catalog, History: g.money.Books.History, Org: g.org, Reader: g.reader, API: g.api, Refused: g.refusedWhatever,
	})
	g.listeners = &listen.Listeners{
		Config:      g.config,
		Signers:     func() *x509.CertPool { return g.pipeline().Callers.Directory.Signers() },
		Revocations: func() map[string]time.Time { return g.pipeline().Callers.Directory.Revocations() },
		Now:         deps.Now, Logger: deps.Logger, Refused: g.recorder.Refused, End: g.streams.End,
	}
	g.listeners.Measure(g.meter())
	measureSources(g.meter(), deps.Now, g.sources)
	g.envoys, err = xds.NewServer(xds.Deps{
		Logger: deps.Logger, Meter: deps.Providers.Meter().Meter("github.com/tollgate-dev/tollgate/gateway/xds"), Now: deps.Now,
		Token: func() string { return g.current.Load().config.Envoy.XDS.Token.Reveal() },
	})
	if err != nil {
		return nil, err
	}
	if err := g.Swap(cfg); err != nil {
		g.engines.Close()
		g.audit.Close()
		return nil, err
	}
	return g, nil
}

// newDecisions makes the store and the explanations of decisions, and the list of gateways that have them.
func (g *Gateway) newDecisions(cfg *settings.Config) (err error) {
	g.fleet = &fleet.Fleet{
		Redis: g.deps.Redis, Key: cfg.Redis.Prefix.Running(), Instance: g.name, Version: g.deps.Version, Report: g.status.Report,
		Timeout: func() time.Duration { return g.config().Limits.Timeout }, Now: g.deps.Now,
	}
	g.decisions, err = decisions.New(cfg, decisions.Deps{
		Redis: g.deps.Redis, Now: g.deps.Now, Logger: g.deps.Logger, Meter: g.meter(), PolicyMeter: g.deps.Providers.Meter().Meter("github.com/tollgate-dev/tollgate/policies"),
		Go: g.late.Go, Stdout: g.deps.Stdout, Also: g.deps.Decisions, Config: g.config, Chain: func() *filter.Chain { return g.pipeline().Chain }, Zone: g.zone,
	})
	g.questions = &questions.Questions{
		Config: g.config, Org: g.org, DryRun: g.dryRun, Reader: g.reader, Catalog: g.catalog, API: g.api, Now: g.deps.Now,
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
	legacy, err := dialects.New(now.config, translate.Deps{Now: g.deps.Now}.WithDefaults())
	if err != nil {
		return nil, err
	}
	return &explain.DryRun{
		Pipeline: now.pipeline, Translators: legacy.Translators(),
		Counted: g.limiter.Show, Reads: filter.ReadsOf(g.api), Reader: now.reader,
		Ledger: g.money.Ledger.Store.Show, Approval: g.approvals.Get, Entries: func(org string) []policies.Entry { return tenants.Entries(now.config, org) }, Decide: now.engine.Decide, Now: g.deps.Now,
	}, nil
}

// decisionRows are the operators' questions about decisions, made and hypothetical.
type decisionRows struct {
	decisions.Rows
	asked
}

type asked = questions.Rows

// fleetRows are the operators' questions about gateways: which there are, and which calls they have refused.
type fleetRows struct {
	*fleet.Fleet
	decisions.Rows
}

// newMoney makes the ledger and the receivers of its findings.
func (g *Gateway) newMoney(cfg *settings.Config) {
	g.keep = &keep.Keep{
		Config: g.config, Now: g.deps.Now, Refused: g.refusedWhatever,
		Update: func(kind operation.Kind) *schema.Operation { return explain.UpdatesOf(g.api)[kind] },
	}
	g.alerts = &alerts.Alerts{Config: g.config, Logger: g.deps.Logger, Now: g.deps.Now, Go: g.late.Go, Meter: g.meter(), KeepLink: g.keep.Link}
	g.money = money.New(cfg, spend.Holder{Incarnation: ulid.Make().String(), Gateway: cmp.Or(cfg.Instance, g.deps.Instance)}, money.Deps{
		Scripts: g.scripts, Now: g.deps.Now, Logger: g.deps.Logger, Meter: g.meter(), Go: g.late.Go, Gateway: g.name, Limits: g.store, Catalog: g.catalog,
		Audit: g.audit.Log, Alerts: g.alerts, Did: g.decisions.Did, Job: g.job,
		Config: g.config, Org: g.org, Plan: g.plan,
		Reader: g.reader,
		Zone:   g.zone,
	})
}

// job asks the platform for the outcome of a hold's job.
func (g *Gateway) job(ctx context.Context, org string, h *spend.Hold) (*spend.Settlement, error) {
	o, client := g.org(org), g.current.Load().runs.Client
	if o == nil || client == nil {
		return nil, nil //nolint:nilnil // nothing is known of it
	}
	return filter.JobEnd(ctx, client, agent(g.deps.Version), org, h, o.Prices.Runs.Of(h.About.Name))
}

// engine is that of the configuration in force, nil before the first.
func (g *Gateway) engine() *policies.Engine {
	if now := g.current.Load(); now != nil {
		return now.engine
	}
	return nil
}

// inForce shows the configuration in force to operators.
func (g *Gateway) inForce(org string) (*admin.InForce, error) {
	cfg, loaded := g.config(), g.status.Report().Loaded
	text, err := cfg.Show(org)
	if err == nil && text == nil {
		err = admin.ErrNoOrg
	}
	return &admin.InForce{Revision: cfg.Revision, Loaded: loaded, Org: org, YAML: string(text)}, err
}

// policyStatus tells how the policies in force are doing.
func (g *Gateway) policyStatus() []admin.PolicyStatus {
	return engines.Status(g.engine(), g.org, g.catalog)
}

// reader reads at the platform under the configuration in force.
func (g *Gateway) reader() *filter.Reader { return g.current.Load().reader }

// zone is when the days and months of an organisation begin.
func (g *Gateway) zone(org string) spend.Zone { return g.current.Load().zones[org] }

// org returns the configuration of an organisation, nil for none.
func (g *Gateway) org(id string) *settings.Org { return g.current.Load().callers.Org(id) }

// plan returns the budgets of an organisation, nil for none.
func (g *Gateway) plan(org string) *spend.Plan {
	if t := g.pipeline().Callers.Tenants[org]; t != nil {
		return t.Budgets
	}
	return nil
}

// clock is a function as the limiter's clock.
type clock func() time.Time

// Now implements ratelimit.Clock.
func (c clock) Now() time.Time { return c() }

// prices reads price lists with the credentials now in force.
type prices struct{ g *Gateway }

// Lists implements catalog.Fetcher.
func (p prices) Lists(ctx context.Context, org string) (catalog.Lists, error) {
	l, err := p.g.current.Load().reader.Lists(ctx, org)
	if o := p.g.org(org); err == nil && o != nil {
		l = o.Prices.Apply(l)
		if p.g.catalog.Last(org) == nil { // its policies were loaded before any list
			p.g.engines.TellUnlisted(o, catalog.NewSnapshot(l, catalog.Rates{}, p.g.deps.Now()))
		}
	}
	return l, err
}

// streamAllowed reports whether an open event stream may go on under the
// configuration now in force, and for how long, 0 without an end.
func (g *Gateway) streamAllowed(s filter.Stream) (left time.Duration, ok bool) {
	state, now := g.current.Load(), g.deps.Now()
	revision, ok := state.engine.Revision(s.Caller.Org)
	if !ok || s.Policies != "" && revision != s.Policies {
		return 0, false
	}
	until, ok := state.pipeline.Callers.Directory.Holds(s.Caller, now)
	if !until.IsZero() {
		left = until.Sub(now)
	}
	return left, ok
}

func (g *Gateway) pipeline() *filter.Pipeline { return g.current.Load().pipeline }

// config is the configuration in force, nil before the first.
func (g *Gateway) config() *settings.Config {
	if now := g.current.Load(); now != nil {
		return now.config
	}
	return nil
}

// Handler returns the HTTP door.
func (g *Gateway) Handler() http.Handler {
	cfg := g.current.Load().config
	return readiness{g: g, door: &reverseproxy.Handler{
		Pipeline: g.pipeline, Recorder: g.recorder, Peer: cfg.Balancers.Client, Traced: cfg.Balancers.Traced, BodyTimeout: cfg.Timeouts.Body, WriteTimeout: cfg.Timeouts.Write,
		Release: wire.Release, Certificates: listen.Certificates, Excess: listen.Excess,
	}}
}

// ExtProc returns the Envoy door, with the configuration of Envoys and health beside
// it.
func (g *Gateway) ExtProc() *grpc.Server {
	s := (&extproc.Server{Pipeline: g.pipeline, Recorder: g.recorder}).NewGRPC(envoy.MutualTLS(g.config)...)
	g.envoys.Register(s)
	healthpb.RegisterHealthServer(s, readiness{g: g})
	return s
}

// AdminHandler returns the handler of the admin listener.
func (g *Gateway) AdminHandler() http.Handler {
	deps, cfg := g.adminDeps(), g.config()
	if !cfg.Admin.Console {
		return admin.New(deps)
	}
	return ui.New(deps, ui.NewSessions(g.deps.Redis, cfg.Redis.Prefix.Sessions())).Before(admin.New(deps))
}

// adminDeps returns the dependencies of the admin listener.
func (g *Gateway) adminDeps() admin.Deps {
	return admin.Deps{
		Status:  g.status,
		Metrics: g.deps.Providers.Handler(),
		Admins:  func() *admin.Directory { return g.current.Load().admins },
		Now:     g.deps.Now,
		Probe:   g.probe,

		Attempts: g.attempts,
		Logger:   g.deps.Logger,
		Audit:    g.audit.Log,

		Limits:    limits.Rows{Limiter: g.limiter, Org: g.org, Tenant: func(id string) *filter.Tenant { return g.pipeline().Callers.Tenants[id] }, Now: g.deps.Now},
		Legacy:    g.retired.Rows(),
		Spend:     g.money.Rows(),
		Approvals: answers.Rows{Store: g.approvals, Org: g.org},
		Keys:      g.keys.Rows(),
		Tokens:    g.tokens.Rows(),
		Envoys:    g.envoys,

		Policies:  g.policyStatus,
		Decisions: decisionRows{g.decisions.Rows(), g.questions.Rows()},
		Fleet:     fleetRows{g.fleet, g.decisions.Rows()},
		Shapes:    adminShapes(),
		Config:    g.inForce,
		Orgs:      func() []row.Tenant { return tenants.List(g.config()) },
	}
}

// probe implements admin.Deps.Probe: its result matches the answers that callers get.
func (g *Gateway) probe(ctx context.Context) (away []string, err error) {
	cfg := g.current.Load().config
	if slices.ContainsFunc(g.catalog.Status(), func(s catalog.Status) bool {
		return s.Err != nil && g.deps.Now().Sub(s.Fetched) > cfg.Catalog.MaxAge
	}) {
		away = append(away, "the price list of an organisation cannot be read: what its policies judge by price is refused")
	}
	for org, what := range g.money.Images.Losses() {
		away = append(away, "the ledger of organisation "+org+" was lost: "+what)
	}
	err = g.store.Check(ctx)
	switch {
	case err == nil && !g.limiter.Away():
		return away, nil
	case errors.Is(err, redisstore.ErrUnfit):
		return nil, err
	}
	closed := func(f ratelimit.Failure) bool { return f == ratelimit.FailClosed }
	if closed(cfg.Limits.Failure.Read) || closed(cfg.Limits.Failure.Write) {
		return nil, ratelimit.ErrUnavailable
	}
	for _, o := range cfg.Orgs {
		if closed(o.Failure.Read) || closed(o.Failure.Write) {
			return nil, ratelimit.ErrUnavailable
		}
	}
	return append(away, "the shared store does not answer: calls pass as the failure policies say"), nil
}

// Close releases the resources of a Gateway that is not running.
func (g *Gateway) Close() {
	g.changing.Lock()
	defer g.changing.Unlock()
	g.closed = true
	g.current.Load().close()
	g.engines.Close()
	g.audit.Close()
}

func orgs(cfg *settings.Config) []string {
	ids := make([]string, len(cfg.Orgs))
	for i, o := range cfg.Orgs {
		ids[i] = o.ID
	}
	return ids
}
