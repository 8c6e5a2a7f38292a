package money

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/tollgate-dev/tollgate/gateway/account"
	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/groupcommit"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/spend"
	spendstore "github.com/tollgate-dev/tollgate/policies/spend/redisstore"
	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
)

// Answering is how much longer than a call of the platform may take a reservation
// can be under way.
const Answering = 10 * time.Second

// Alerts tells receivers of the findings of passes over ledgers.
type Alerts interface {
	Thresholds(notices spend.Notices, history *spend.History, plan func(org string) *spend.Plan) *spend.Alerts
	Cause(ctx context.Context, c spend.Cause, r spend.Record, budget, idle string, ended func(error))
	Strangers(ctx context.Context, org string, found []spend.Found)
	Drift(ctx context.Context, org string, drifted []spend.Drift)
	Short(ctx context.Context, org string, r *spend.Report)
	Lost(ctx context.Context, org string, l *Loss)
}

// Deps are the ledger's dependencies. All are required but Audit.
type Deps struct {
	Scripts *groupcommit.Client
	Now     func() time.Time
	Logger  *slog.Logger
	// Meter makes the instruments.
	Meter metric.Meter
	// Go runs work behind answers.
	Go func(f func())
	// Gateway names this one among those that share the store.
	Gateway string
	// Intents is the store of the intents that are recorded with reservations.
	Intents *spendstore.Intents
	// Alone says that no other gateway can share the store.
	Alone bool
	// State is the directory for the journal of owners; "" keeps none.
	State string
	// Limits is the store of counts, which knows the server and the gateways that are alive.
	Limits *redisstore.Store
	// Catalog has the price lists.
	Catalog *catalog.Catalog
	// Audit is the audit log, nil for none.
	Audit  *audit.Log
	Alerts Alerts
	// Did keeps an act of the gateway's own.
	Did func(org string, of spend.Owner, operation, resource, text string)
	// Job asks the platform for the end of a hold's job, nil for an unknown one.
	Job func(ctx context.Context, org string, h *spend.Hold) (*spend.Settlement, error)
	// Dead returns how long another gateway has been silent if it is known to be dead.
	Dead func(ctx context.Context, incarnation string) (silent time.Duration, dead bool)
	// Claim makes a resource that of a hold's call, and reports whether it is.
	Claim func(ctx context.Context, org string, f *spend.Found, h *spend.Hold) (bool, error)

	*view.Current
	// Account returns the client of the platform's accounts in force.
	Account func() *account.Client
}

// Money is the ledger and its keepers.
type Money struct {
	Ledger *spend.Ledger
	// Outbox is the ledger's store.
	Outbox *spend.Outbox
	// Books keeps the ledger in line with the platform.
	Books *spend.Loop
	// Images remembers ledgers.
	Images  *spend.Watch
	Notices spend.Notices
	Keeper  *spend.Keeper
	// Journal keeps the memory of ledgers for the next start; nil without a state directory.
	Journal *spend.Journal

	deps     Deps
	accounts *spendstore.Store
	names    names
}

// New makes the ledger of spending and the loops that keep it in line with the
// platform.
func New(cfg *settings.Config, self spend.Holder, deps Deps) *Money {
	m := &Money{deps: deps, accounts: spendstore.New(deps.Scripts, cfg.Redis.Prefix.Spend(), deps.Zone)}
	m.accounts.Now, m.accounts.Intents = deps.Now, deps.Intents
	m.accounts.Watch(deps.Limits.Server())
	store := m.accounts
	history := &spend.History{Store: store, Retention: cfg.Spend.History}
	alerts, passes := deps.Alerts.Thresholds(store, history, m.plan), newPasses(m.deps.Meter, m.deps.Now, 2*cfg.Spend.Reconcile)
	balances := newBalances(m.deps.Meter, m.deps.Now, 2*cfg.Spend.Reconcile, m.plan)
	m.Notices, m.Keeper = store, &spend.Keeper{Show: store.Show, Notice: store.Notice}
	images := m.newImages(store)
	m.openJournal(cfg, images)
	remembered := images.Remember(store)
	reconciler := &spend.Reconciler{
		Store: remembered, Images: images, Repaired: passes.repaired, List: m.inventory, Get: m.resource, Claim: m.deps.Claim, Job: m.deps.Job, Lock: store.Lock, Logger: m.deps.Logger, Moves: m.moves,
		Dead: func(ctx context.Context, h spend.Holder) (time.Duration, bool) {
			return m.deps.Dead(ctx, h.Incarnation)
		},
		Nothing: m.deps.Intents.Forget,
		History: history,
		Seen: func(ctx context.Context, org string, s *spend.State) {
			balances.saw(org, s)
			alerts.Look(ctx, org, s)
		},
		Bills:    &spend.Bills{Store: store, Notices: store, List: m.bills, After: cfg.Spend.Bills, Retention: cfg.Spend.History},
		Enforcer: m.newEnforcer(store, cfg.Spend.Reconcile), Patience: cfg.Timeouts.Call + Answering, Unresolved: cfg.Spend.Unresolved,
		Done: func(ctx context.Context, org string, r spend.Report) {
			before := passes.done(ctx, org, r)
			m.deps.Alerts.Strangers(ctx, org, r.Strangers)
			m.deps.Alerts.Drift(ctx, org, r.Drifted)
			m.didEnd(org, r.Ended)
			if r.Short && !before.Short {
				m.deps.Alerts.Short(ctx, org, &r)
			}
		},
	}
	m.Books = spend.NewLoop(reconciler, cfg.Spend.Reconcile, m.budgeted, store.Leader(3*cfg.Spend.Reconcile))
	m.newOutbox(cfg, remembered, self)
	m.Ledger = &spend.Ledger{Costs: spend.NewRunCosts(), Store: m.Outbox, Rebuild: reconciler.Rebuild, Doubt: m.Books.Kick, Carry: m.carry, Images: images}
	m.Images = &spend.Watch{Images: images, Orgs: m.budgeted, Rebuild: reconciler.Rebuild, Interval: cfg.Spend.Reconcile, Beat: ratelimit.Beat}
	return m
}

// newOutbox makes the outbox that delivers settlements to a store.
func (m *Money) newOutbox(cfg *settings.Config, store spend.Store, self spend.Holder) {
	m.Outbox = spend.NewOutbox(store, self)
	m.Outbox.Now, m.Outbox.Logger, m.Outbox.Orgs, m.Outbox.Doubt = m.deps.Now, m.deps.Logger, m.budgeted, m.Books.Kick
	m.Outbox.Released, m.Outbox.Get = m.didRelease, m.resource
	m.Outbox.Interval, m.Outbox.Patience = cfg.Spend.Reconcile, cfg.Timeouts.Call+Answering
	measureHolds(m.deps.Meter, m.Outbox.Status)
}

// inventory lists an organisation's resources at the platform, with prices: the
// counted and, where callers are kept apart, the owned resources.
func (m *Money) inventory(ctx context.Context, org string) ([]spend.Found, error) {
	prices, err := m.deps.Catalog.Snapshot(ctx, org)
	if err != nil {
		return nil, err
	}
	kinds := spend.Counts
	if o := m.org(org); o != nil && o.Isolation.Applies() {
		kinds = operation.Owned
	}
	return m.deps.Account().Inventory(ctx, org, cmp.Or(m.plan(org), new(spend.Plan)), kinds, prices)
}

// resource reads one resource of an organisation at the platform, nil if there is none.
func (m *Money) resource(ctx context.Context, org string, kind operation.Kind, id string) (*spend.Found, error) {
	prices, err := m.deps.Catalog.Snapshot(ctx, org)
	if err != nil {
		return nil, err
	}
	return m.deps.Account().Get(ctx, org, cmp.Or(m.plan(org), new(spend.Plan)), kind, id, prices)
}

// bills lists the platform's bills to an organisation, by hour.
func (m *Money) bills(ctx context.Context, org string, from, to time.Time) ([]spend.Bill, error) {
	return m.deps.Account().Bills(ctx, org, from, to)
}

// org returns the configuration of an organisation, nil for none.
func (m *Money) org(id string) *settings.Org { return m.deps.Org(id) }

// HasBudgets reports whether any organisation has budgets, and therefore a ledger.
func (m *Money) HasBudgets() bool { return len(m.budgeted()) > 0 }

// budgeted lists the organisations that have budgets.
func (m *Money) budgeted() []string {
	var ids []string
	orgs := m.deps.Config().Orgs
	for i := range orgs {
		if id := orgs[i].ID; m.plan(id) != nil {
			ids = append(ids, id)
		}
	}
	return ids
}
