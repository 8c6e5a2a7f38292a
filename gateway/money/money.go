package money

import (
	"context"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"

	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/idempotency"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	spendstore "github.com/tollgate-dev/tollgate/policies/ledger/redisstore"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
)

// SettlementGrace is the time for the settlement of a reservation in addition to the longest platform call. After both, a hold in flight
// counts as abandoned by its gateway.
const SettlementGrace = 10 * time.Second

// headInterval is the time between two polls for changes of ledgers.
const headInterval = 500 * time.Millisecond

// Alerts sends alerts about the results of reconciliation. Its methods return without waiting for the delivery of the alerts.
type Alerts interface {
	// CheckThresholds compares a ledger with the thresholds of its budgets, and sends an alert for each newly reached threshold.
	CheckThresholds(ctx context.Context, org string, p *ledger.Plan, s *ledger.State)
	// Cause reports that the resource r will be stopped, was stopped, or is idle, because of c. budgetAlert is the name of the alert if c is a
	// budget, idleAlert the name if c is idleness. ended is called with the result of the delivery.
	Cause(ctx context.Context, c *ledger.Cause, r *ledger.Record, budgetAlert, idleAlert string, ended func(error))
	// Unmanaged reports resources created outside the gateway; found may be empty.
	Unmanaged(ctx context.Context, org string, found []ledger.PlatformResource)
	// Drift reports resources changed or deleted outside the gateway; drifted may be empty.
	Drift(ctx context.Context, org string, drifted []ledger.Drift)
	// IncompleteList reports that the platform's list omits most known resources.
	IncompleteList(ctx context.Context, org string, r *ledger.Report)
	// LedgerLost reports that a lost ledger was rebuilt.
	LedgerLost(ctx context.Context, org string, l *Loss)
}

// Deps are the dependencies of Money. All fields are required, except Audit, StateDir and SingleGateway.
type Deps struct {
	// Accounts is the store of ledgers, returned by [NewAccounts].
	Accounts *spendstore.Store
	Logger   *slog.Logger
	// Meter creates the instruments.
	Meter metric.Meter
	// SingleGateway is set if no other gateway can share the store.
	SingleGateway bool
	// StateDir is the directory of the owner journal; "" disables the journal.
	StateDir string
	// Limits is the store of rate limit counts. Money uses it only to learn which Redis server it is connected to and which gateways are live.
	Limits *redisstore.Store
	// Catalog provides the price lists.
	Catalog *catalog.Catalog
	// Audit is the audit log, or nil.
	Audit  *audit.Log
	Alerts Alerts
	// History is the history of costs, returned by [NewHistory].
	History *ledger.History
	// RecordAction stores an action taken by the gateway itself.
	RecordAction func(org string, of ledger.Owner, operation, resource, text string)
	// Intents tracks the intents that are recorded together with reservations.
	Intents *idempotency.Tracker

	*view.Current
	// Account returns the client for the platform accounts in the current configuration.
	Account func() *upstream.Account
}

// Money is the ledger together with the components that maintain it. The gateway runs Outbox, Loop, Watcher and, unless it is nil, Journal;
// see [ledger.Components].
type Money struct {
	Ledger *ledger.Ledger
	// Outbox is the store that the ledger writes to.
	Outbox *ledger.Outbox
	// Loop reconciles the ledger with the platform.
	Loop *ledger.Loop
	// Watcher polls ledgers and keeps snapshots of them.
	Watcher *ledger.Watcher
	Notices ledger.NoticeStore
	Snoozer *ledger.Snoozer
	// Journal stores the snapshots of ledgers for the next start; nil without a state directory.
	Journal *ledger.Journal

	deps  *Deps
	names names
}

// NewAccounts returns the store of ledgers. It does not connect.
func NewAccounts(cfg *settings.Config, scripts redis.Cmdable, current *view.Current) *spendstore.Store {
	return spendstore.New(scripts, cfg.Redis.Prefix.Spend(), current.Zone)
}

// NewHistory returns the history of costs in a store of ledgers.
func NewHistory(cfg *settings.Config, accounts *spendstore.Store) *ledger.History {
	return &ledger.History{Store: accounts, Retention: cfg.Spend.History}
}

// New returns the ledger and the background loops that keep it consistent with the platform. name is the name of this gateway. New does not
// start the loops.
func New(cfg *settings.Config, name string, deps Deps) *Money {
	d, store := &deps, deps.Accounts
	store.Now, store.Intents = d.Now, d.Intents.Store()
	store.SetServer(d.Limits.Server())
	journal := openJournal(cfg, d)
	books := ledger.New(ledger.Deps{
		Store: store, Platform: platform{d}, Gateway: gateway{d}, Events: newEvents(cfg, d), Leadership: store.Leader(3 * cfg.Spend.Reconcile),
		Logger: d.Logger, Now: d.Now, Self: ledger.Holder{Incarnation: d.Intents.Gateway, Gateway: name}, SingleGateway: d.SingleGateway, Journal: journal,
		History: d.History, BillDelay: cfg.Spend.Bills, Interval: cfg.Spend.Reconcile, PollInterval: headInterval,
		CallTimeout: cfg.Timeouts.Call + SettlementGrace, Unresolved: cfg.Spend.Unresolved, PeerTimeout: peerPatience,
	})
	measureHolds(d.Meter, books.Outbox)
	return &Money{
		Ledger: books.Ledger, Outbox: books.Outbox, Loop: books.Loop, Watcher: books.Watch, Notices: store, Snoozer: &ledger.Snoozer{Store: books.Outbox},
		Journal: journal, deps: d,
	}
}

// org returns the configuration of an organisation, or nil.
func (m *Money) org(id string) *settings.Org { return m.deps.Org(id) }

// HasLedgers reports whether any organisation has a ledger. An organisation without budgets may have one too; see callers.LedgerPlan.
func (m *Money) HasLedgers() bool { return len(m.deps.Budgeted()) > 0 }
