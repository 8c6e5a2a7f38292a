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

// SettlementGrace is how much longer than a call of the platform may take a reservation
// can be under way.
const SettlementGrace = 10 * time.Second

// headInterval is the time between two looks at the heads of ledgers.
const headInterval = 500 * time.Millisecond

// Alerts tells receivers of what passes over ledgers find.
type Alerts interface {
	// CheckThresholds compares a ledger with the thresholds of its budgets.
	CheckThresholds(ctx context.Context, org string, p *ledger.Plan, s *ledger.State)
	Cause(ctx context.Context, c *ledger.Cause, r *ledger.Record, budget, idle string, ended func(error))
	Unmanaged(ctx context.Context, org string, found []ledger.PlatformResource)
	Drift(ctx context.Context, org string, drifted []ledger.Drift)
	IncompleteList(ctx context.Context, org string, r *ledger.Report)
	LedgerLost(ctx context.Context, org string, l *Loss)
}

// Deps are the ledger's dependencies. All are required but Audit.
type Deps struct {
	// Accounts is the store of ledgers, which [NewAccounts] returns.
	Accounts *spendstore.Store
	Now      func() time.Time
	Logger   *slog.Logger
	// Meter makes the instruments.
	Meter metric.Meter
	// SingleGateway says that no other gateway can share the store.
	SingleGateway bool
	// StateDir is the directory for the journal of owners; "" keeps none.
	StateDir string
	// Limits is the store of counts, which knows the server and the gateways that are alive.
	Limits *redisstore.Store
	// Catalog has the price lists.
	Catalog *catalog.Catalog
	// Audit is the audit log, nil for none.
	Audit  *audit.Log
	Alerts Alerts
	// History is the history of costs, which [NewHistory] returns.
	History *ledger.History
	// RecordAction keeps an act of the gateway's own.
	RecordAction func(org string, of ledger.Owner, operation, resource, text string)
	// Intents is the desk whose intents are recorded with reservations.
	Intents *idempotency.Tracker
	// Job asks the platform for the end of a hold's job, nil for an unknown one.
	Job func(ctx context.Context, org string, h *ledger.Hold) (*ledger.Settlement, error)

	*view.Current
	// Account returns the client of the platform's accounts in force.
	Account func() *upstream.Account
}

// Money is the ledger and its keepers.
type Money struct {
	Ledger *ledger.Ledger
	// Outbox is the ledger's store.
	Outbox *ledger.Outbox
	// Loop keeps the ledger in line with the platform.
	Loop *ledger.Loop
	// Watcher remembers ledgers.
	Watcher *ledger.Watcher
	Notices ledger.NoticeStore
	Keeper  *ledger.Snoozer
	// Journal keeps the memory of ledgers for the next start; nil without a state directory.
	Journal *ledger.Journal

	deps  *Deps
	names names
}

// NewAccounts returns the store of ledgers. It does not dial.
func NewAccounts(cfg *settings.Config, scripts redis.Cmdable, current *view.Current) *spendstore.Store {
	return spendstore.New(scripts, cfg.Redis.Prefix.Spend(), current.Zone)
}

// NewHistory returns the history of costs in a store of ledgers.
func NewHistory(cfg *settings.Config, accounts *spendstore.Store) *ledger.History {
	return &ledger.History{Store: accounts, Retention: cfg.Spend.History}
}

// New makes the ledger of spending and the loops that keep it in line with the
// platform.
func New(cfg *settings.Config, self ledger.Holder, deps Deps) *Money {
	d, store := &deps, deps.Accounts
	store.Now, store.Intents = d.Now, d.Intents.Store()
	store.SetServer(d.Limits.Server())
	journal := openJournal(cfg, d)
	books := ledger.New(ledger.Deps{
		Store: store, Platform: platform{d}, Gateway: gateway{d}, Events: newEvents(cfg, d), Leadership: store.Leader(3 * cfg.Spend.Reconcile),
		Logger: d.Logger, Now: d.Now, Self: self, SingleGateway: d.SingleGateway, Journal: journal,
		History: d.History, BillDelay: cfg.Spend.Bills, Interval: cfg.Spend.Reconcile, PollInterval: headInterval,
		CallTimeout: cfg.Timeouts.Call + SettlementGrace, Unresolved: cfg.Spend.Unresolved, PeerTimeout: peerPatience,
	})
	measureHolds(d.Meter, books.Outbox)
	return &Money{
		Ledger: books.Ledger, Outbox: books.Outbox, Loop: books.Loop, Watcher: books.Watch, Notices: store, Keeper: &ledger.Snoozer{Store: store},
		Journal: journal, deps: d,
	}
}

// org returns the configuration of an organisation, nil for none.
func (m *Money) org(id string) *settings.Org { return m.deps.Org(id) }

// HasBudgets reports whether any organisation has budgets, and therefore a ledger.
func (m *Money) HasBudgets() bool { return len(m.deps.Budgeted()) > 0 }
