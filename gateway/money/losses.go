package money

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
)

// openJournal opens the owner journal in the state directory. It returns nil without a state directory, or if the journal cannot be opened,
// because the gateway can serve without one. Installations that share a directory use different journals.
func openJournal(cfg *settings.Config, d *Deps) *ledger.Journal {
	if d.StateDir == "" {
		return nil
	}
	of := sha256.Sum256([]byte(cfg.Platform.BaseURL + "\n" + cfg.Redis.Prefix.Spend()))
	journal, err := ledger.OpenJournal(d.StateDir, fmt.Sprintf("owners-%x", of[:4]), d.Accounts, d.Logger)
	telemetry.Must(d.Meter.Int64ObservableGauge("tollgate.ledger.journal_broken",
		metric.WithDescription("1 while the owner journal cannot be written."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			broken := int64(0)
			if err != nil || journal.Broken() {
				broken = 1
			}
			o.Observe(broken)
			return nil
		})))
	if err != nil {
		d.Logger.Error("cannot open the owner journal; owners will be lost if Redis and all gateways are lost together", "error", err.Error())
		return nil
	}
	return journal
}

// losses counts how often ledgers were lost. All counts start at 0, so that the first loss is visible as an increase.
type losses struct {
	mu     sync.Mutex // guards counts
	counts map[loss]int64
}

// loss identifies the lost part of an organisation's ledger.
type loss struct {
	org  string
	lost ledger.LostPart
}

func newLosses(d *Deps) *losses {
	l := &losses{counts: make(map[loss]int64)}
	count := telemetry.Must(d.Meter.Int64ObservableCounter("tollgate.ledger.losses",
		metric.WithDescription("Number of times a spending ledger, or a part of one, was lost from the store.")))
	telemetry.Must(d.Meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, org := range d.Budgeted() {
			for _, lost := range ledger.Losses() {
				o.ObserveInt64(count, l.counts[loss{org, lost}],
					metric.WithAttributes(attribute.String("org", org), attribute.String("lost", string(lost))))
			}
		}
		return nil
	}, count))
	return l
}

func (l *losses) add(org string, lost ledger.LostPart) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[loss{org, lost}]++
}

// peerPatience is the maximum time for which a rebuild waits for the data that other gateways remember. It is also the time after which a
// gateway without heartbeats no longer counts as alive.
const peerPatience = 5 * time.Second

// LossDetector is the store of the rate limiter with an additional step. After the Redis server has restarted or was replaced, the limiter
// calls Restore to restore its counts. LossDetector then first determines which ledgers the server has lost.
type LossDetector struct {
	*redisstore.Store

	// Money knows the ledgers.
	Money *Money
}

// Restore determines which ledgers the server has lost, and then calls the wrapped Restore.
func (p LossDetector) Restore(ctx context.Context, gateway string, within time.Duration, adjust func(context.Context) error) error {
	if err := p.Money.deps.Accounts.DetectLosses(ctx, p.Money.deps.Budgeted()); err != nil {
		return err
	}
	return p.Store.Restore(ctx, gateway, within, adjust)
}

func lossOf(l *ledger.Loss) *Loss {
	if l == nil {
		return nil
	}
	return &Loss{Lost: string(l.Lost), Reason: l.Lost.String(), At: l.At, Rebuilt: timeOf(l.Rebuilt), Returned: l.Returned, Unowned: l.Unowned}
}
