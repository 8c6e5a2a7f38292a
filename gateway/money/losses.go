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

// losses counts losses of ledgers. All counts start at 0, so that a first loss is visible as an increase.
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

// peerPatience limits how long a rebuild waits for the memory of other gateways. It is also the time after which a silent gateway no longer
// counts as alive.
const peerPatience = 5 * time.Second

// LossDetector wraps the limiter's store. When the store has restarted or was replaced, the limiter restores its counts; LossDetector first
// detects which ledgers were lost at the same time.
type LossDetector struct {
	*redisstore.Store

	// Detect detects losses of ledgers.
	Detect func(ctx context.Context) error
}

// Restore calls Detect and then the wrapped Restore.
func (p LossDetector) Restore(ctx context.Context, gateway string, within time.Duration, adjust func(context.Context) error) error {
	if err := p.Detect(ctx); err != nil {
		return err
	}
	return p.Store.Restore(ctx, gateway, within, adjust)
}

// DetectLosses determines which ledgers the store has lost.
func (m *Money) DetectLosses(ctx context.Context) error {
	return m.deps.Accounts.DetectLosses(ctx, m.deps.Budgeted())
}

func lossOf(l *ledger.Loss) *Loss {
	if l == nil {
		return nil
	}
	return &Loss{Lost: string(l.Lost), Reason: l.Lost.String(), At: l.At, Rebuilt: timeOf(l.Rebuilt), Returned: l.Returned, Unowned: l.Unowned}
}
