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

// openJournal opens the journal of owners in the state directory, nil without one. Installations that share a
// directory have different journals. A gateway whose journal cannot be opened serves without one.
func openJournal(cfg *settings.Config, d *Deps) *ledger.Journal {
	if d.StateDir == "" {
		return nil
	}
	of := sha256.Sum256([]byte(cfg.Platform.BaseURL + "\n" + cfg.Redis.Prefix.Spend()))
	journal, err := ledger.OpenJournal(d.StateDir, fmt.Sprintf("owners-%x", of[:4]), d.Accounts, d.Logger)
	telemetry.Must(d.Meter.Int64ObservableGauge("tollgate.ledger.journal_broken",
		metric.WithDescription("1 while the journal of owners cannot be written."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			broken := int64(0)
			if err != nil || journal.Broken() {
				broken = 1
			}
			o.Observe(broken)
			return nil
		})))
	if err != nil {
		d.Logger.Error("journal of owners cannot be opened; owners are lost if Redis and all gateways are lost together", "error", err.Error())
		return nil
	}
	return journal
}

// losses counts losses of ledgers, from 0 on, so that a first loss is an increase.
type losses struct {
	mu     sync.Mutex // guards counts
	counts map[loss]int64
}

// loss is a part of an organisation's ledger.
type loss struct {
	org  string
	lost ledger.LostPart
}

func newLosses(d *Deps) *losses {
	l := &losses{counts: make(map[loss]int64)}
	count := telemetry.Must(d.Meter.Int64ObservableCounter("tollgate.ledger.losses", metric.WithDescription("Ledgers of spending that the store has lost, or a part of them.")))
	telemetry.Must(d.Meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, org := range d.Budgeted() {
			for _, lost := range ledger.Losses() {
				o.ObserveInt64(count, l.counts[loss{org, lost}], metric.WithAttributes(attribute.String("org", org), attribute.String("lost", string(lost))))
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

// peerPatience is how long a rebuild waits for what other gateways remember: as long as
// one that says nothing is taken to be alive.
const peerPatience = 5 * time.Second

// LossDetector is the limiter's store. Before it restores counts that another server has lost,
// the losses of ledgers are found out.
type LossDetector struct {
	*redisstore.Store

	// DetecttLosses finds out the losses of ledgers.
	Detect func(ctx context.Context) error
}

// Restore implements ratelimit.Store.
func (p LossDetector) Restore(ctx context.Context, gateway string, within time.Duration, adjust func(context.Context) error) error {
	if err := p.Detect(ctx); err != nil {
		return err
	}
	return p.Store.Restore(ctx, gateway, within, adjust)
}

// DetectLossest finds out which ledgers the store has lost.
func (m *Money) DetectLosses(ctx context.Context) error {
	return m.deps.Accounts.DetectLosses(ctx, m.deps.Budgeted())
}

func lossOf(l *ledger.Loss) *Loss {
	if l == nil {
		return nil
	}
	return &Loss{Lost: string(l.Lost), Reason: l.Lost.String(), At: l.At, Rebuilt: timeOf(l.Rebuilt), Returned: l.Returned, Unowned: l.Unowned}
}
