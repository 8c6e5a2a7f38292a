package gateway

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/tollgate-dev/tollgate/gateway/access"
	"github.com/tollgate-dev/tollgate/gateway/account"
	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/alerts"
	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/audit/ship"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/dialects"
	"github.com/tollgate-dev/tollgate/gateway/engines"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/fleet"
	"github.com/tollgate-dev/tollgate/gateway/groupcommit"
	"github.com/tollgate-dev/tollgate/gateway/keep"
	"github.com/tollgate-dev/tollgate/gateway/listen"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/money/charge"
	"github.com/tollgate-dev/tollgate/gateway/oidc"
	"github.com/tollgate-dev/tollgate/gateway/once"
	"github.com/tollgate-dev/tollgate/gateway/overload"
	"github.com/tollgate-dev/tollgate/gateway/platform"
	"github.com/tollgate-dev/tollgate/gateway/questions"
	"github.com/tollgate-dev/tollgate/gateway/retired"
	"github.com/tollgate-dev/tollgate/gateway/revisions"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/selfservice"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/tasks"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
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
)

// Deps are the live things a Gateway works with. All are required but API and
// the listeners.
type Deps struct {
	// Redis counts and remembers. It must not retry by itself; redisstore.Open
	// makes one that does not.
	Redis  redisstore.Client
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
	// State is the directory that keeps the owners of resources for the next start, one for each gateway or shared; "" keeps nothing.
	State string
	// Stdout is where a decision log on standard output goes; nil has none.
	Stdout io.Writer
	// Decisions records each decision, besides the configured log; nil records none.
	Decisions filter.Decisions
	// Isolate runs Rego that is not known to end in child processes; nil runs it in this process, for tests.
	Isolate *policies.Isolator
	// API is the v2 API's description; nil loads the embedded one.
	API *schema.API
	// File reads the configuration file anew, without secrets; nil for a gateway without one.
	File func() (*settings.Config, error)
	// Reread has the configuration file read again and a good configuration put in force, and returns when that was done or
	// when ctx ends; nil for a gateway without a file.
	Reread func(ctx context.Context)
	// Data, Admin and Envoy are used instead of the configured addresses when
	// not nil.
	Data, Admin, Envoy net.Listener
	// Serving is called once all listeners are open; nil is not.
	Serving func()
}

// keylessMemory bounds the bodies of callers without a key that are under way, in
// bytes: 160 of the largest.
const keylessMemory = 16 << 20

// listsMemory bounds the memory of lists that are translated at once, and of the answers made of them until those are sent,
// in bytes: one of 20,000 pods, or 32 answers of 1,500.
const listsMemory = 80 << 20

// Gateway is a running tollgate.
type Gateway struct {
	deps         Deps
	name         string // among those that share the store
	api          *schema.API
	runs         *schema.API    // of the run interface
	bodies       *filter.Memory // of the run interface
	keyless      *filter.Memory // of callers without a key
	lists        *filter.Memory // of lists that are translated
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
	background   tasks.Group // tasks that may outlive their requests
	tasks        *tasks.Supervisor
	fatal        chan error // the error that ends the process: too many tasks have panicked
	fitness      atomic.Pointer[fitness]
	wasReady     atomic.Bool
	waited       atomic.Bool // for the first bundles
	money        *money.Money
	intents      *once.Desk // calls that must not be made twice
	alerts       *alerts.Alerts
	keep         *keep.Service
	approvals    *approval.Store
	keys         *callers.Keys
	issuerKeys   *oidc.Keys
	tokens       *tokens.Tokens
	retired      *retired.Calls
	streams      *filter.Streams
	decisions    *decisions.Decisions
	questions    *questions.Questions
	access       *access.Access
	fleet        *fleet.Fleet
	revisions    *revisions.Revisions
	audit        *ship.Shipping
	envoys       *xds.Server
	listeners    *listen.Listeners
	rows         []row.Row // of the admin listener
	selfService  *selfservice.Service
	engines      *engines.Engines
	view         *view.Current // what is in force, for the parts that outlive configurations
	current      atomic.Pointer[state]
	swapped      chan struct{} // tells Run of a new state
	status       *fleet.Status

	changing sync.Mutex       // held while current is swapped; guards the fields below
	started  *settings.Config // of the process: settings that require a restart are compared with it
	closed   bool
}

// state is one compiled configuration. It is immutable.
type state struct {
	*view.View
	callers  *callers.Callers
	pipeline *filter.Pipeline
	reader   *filter.Reader
	account  *account.Client
	runs     platform.Runs
	engine   *policies.Engine
	legacy   *dialects.Dialects
	admins   *admin.Directory
}

// job asks the platform for the outcome of a hold's job.
func (g *Gateway) job(ctx context.Context, org string, h *spend.Hold) (*spend.Settlement, error) {
	o, client := g.view.Org(org), g.current.Load().runs.Client
	if o == nil || client == nil {
		return nil, nil //nolint:nilnil // nothing is known of it
	}
	return charge.JobEnd(ctx, client, agent(g.deps.Version), org, h, o.Prices.Runs.Of(h.About.Name))
}

// engine is that of the configuration in force, nil before the first.
func (g *Gateway) engine() *policies.Engine {
	if now := g.current.Load(); now != nil {
		return now.engine
	}
	return nil
}

// policyStatus tells how the policies in force are doing.
func (g *Gateway) policyStatus() []engines.PolicyStatus {
	return engines.Status(g.engine(), g.view.Org, g.catalog)
}

// account asks the platform under the configuration in force.
func (g *Gateway) account() *account.Client { return g.current.Load().account }

// clock is a function as the limiter's clock.
type clock func() time.Time

// Now implements ratelimit.Clock.
func (c clock) Now() time.Time { return c() }

// prices reads price lists with the credentials now in force.
type prices struct{ g *Gateway }

// Lists implements catalog.Fetcher.
func (p prices) Lists(ctx context.Context, org string) (catalog.Lists, error) {
	l, err := p.g.current.Load().account.Catalog(ctx, org)
	if o := p.g.view.Org(org); err == nil && o != nil {
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

// Close releases the resources of a Gateway that is not running.
func (g *Gateway) Close() {
	g.changing.Lock()
	defer g.changing.Unlock()
	g.closed = true
	g.current.Load().close()
	g.engines.Close()
	g.audit.Close()
	g.money.Journal.Close()
}

func orgs(cfg *settings.Config) []string {
	ids := make([]string, len(cfg.Orgs))
	for i, o := range cfg.Orgs {
		ids[i] = o.ID
	}
	return ids
}
