package money

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies/spend"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// newImages makes the memory of ledgers, which reports lost ones: by a line of
// the log, a count and a webhook.
func (m *Money) newImages(store interface {
	spend.Store
	spend.Notices
},
) *spend.Images {
	count := m.countLosses()
	return &spend.Images{
		Store: store, Notices: store, Gateway: m.deps.Gateway, Peers: m.deps.Limits.Alive, Recorded: m.recorded, Logger: m.deps.Logger, Now: m.deps.Now,
		Alone: m.deps.Alone, Patience: peerPatience, Late: m.late(),
		Sweep: func(ctx context.Context, org string) error { return m.Outbox.Sweep(ctx, org) },
		Told: func(ctx context.Context, org string, l *spend.Loss) {
			count(org, l.Lost)
			m.deps.Alerts.Lost(ctx, org, lossOf(l))
		},
	}
}

// openJournal opens the journal of owners in the state directory, and has the images recover from it. Installations that share a
// directory have different journals. A gateway whose journal cannot be opened serves without one.
func (m *Money) openJournal(cfg *settings.Config, images *spend.Images) {
	if m.deps.State == "" {
		return
	}
	of := sha256.Sum256([]byte(cfg.Platform.BaseURL + "\n" + cfg.Redis.Prefix.Spend()))
	journal, err := spend.OpenJournal(m.deps.State, fmt.Sprintf("owners-%x", of[:4]), m.deps.Logger)
	telemetry.Must(m.deps.Meter.Int64ObservableGauge("tollgate.ledger.journal_broken",
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
		m.deps.Logger.Error("journal of owners cannot be opened; owners are lost if Redis and all gateways are lost together", "error", err.Error())
		return
	}
	journal.Position = m.accounts.Seen
	m.Journal, images.Journal = journal, journal
	images.Recover(m.accounts.Saw)
}

// countLosses counts losses of ledgers, from 0 on, so that a first loss is an
// increase; count is told of each.
func (m *Money) countLosses() (count func(org string, l spend.Lost)) {
	type loss struct {
		org  string
		lost spend.Lost
	}
	var mu sync.Mutex // guards counts
	counts := make(map[loss]int64)
	meter := m.deps.Meter
	losses := telemetry.Must(meter.Int64ObservableCounter("tollgate.ledger.losses", metric.WithDescription("Ledgers of spending that the store has lost, or a part of them.")))
	telemetry.Must(meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		if m.deps.Config() == nil {
			return nil // it is not serving yet
		}
		mu.Lock()
		defer mu.Unlock()
		for _, org := range m.budgeted() {
			for _, l := range spend.Losses() {
				o.ObserveInt64(losses, counts[loss{org, l}], metric.WithAttributes(attribute.String("org", org), attribute.String("lost", string(l))))
			}
		}
		return nil
	}, losses))
	return func(org string, l spend.Lost) {
		mu.Lock()
		defer mu.Unlock()
		counts[loss{org, l}]++
	}
}

// late returns what reports reservations that this gateway restored into a ledger that had been completed without them, so that
// budgets may be exceeded.
func (m *Money) late() func(ctx context.Context, org string, holds []spend.Hold) {
	count := telemetry.Must(m.deps.Meter.Int64Counter("tollgate.ledger.restored_late",
		metric.WithDescription("Reservations restored into a ledger that was rebuilt without them, because this gateway was not heard in time.")))
	return func(ctx context.Context, org string, holds []spend.Hold) {
		count.Add(ctx, int64(len(holds)), metric.WithAttributes(attribute.String("org", org)))
		for i := range holds {
			h := &holds[i]
			m.deps.Logger.WarnContext(ctx, "reservation restored after the ledger was rebuilt; budgets may be exceeded", "org", org, "hold", h.ID,
				"operation", h.About.Operation, "decision", h.About.Decision)
			m.deps.Did(org, h.Owner, h.About.Operation, h.Resource, "reservation "+h.ID+" restored after the ledger was rebuilt; budgets may be exceeded")
		}
	}
}

// peerPatience is how long a rebuild waits for what other gateways remember: as long as
// one that says nothing is taken to be alive.
const peerPatience = 5 * time.Second

// Proving is the limiter's store. Before it restores counts that another server has lost,
// the losses of ledgers are found out.
type Proving struct {
	ratelimit.Store

	// Prove finds out the losses of ledgers.
	Prove func(ctx context.Context) error
}

// Restore implements ratelimit.Store.
func (p Proving) Restore(ctx context.Context, gateway string, within time.Duration, adjust func(context.Context) error) error {
	if err := p.Prove(ctx); err != nil {
		return err
	}
	return p.Store.Restore(ctx, gateway, within, adjust)
}

// Prove finds out which ledgers the store has lost.
func (m *Money) Prove(ctx context.Context) error { return m.accounts.Prove(ctx, m.budgeted()) }

func lossOf(l *spend.Loss) *Loss {
	if l == nil {
		return nil
	}
	return &Loss{Lost: string(l.Lost), Reason: l.Lost.String(), At: l.At, Rebuilt: timeOf(l.Rebuilt), Returned: l.Returned, Unowned: l.Unowned}
}

// recorded is the word of the audit log, if there is one, on resources.
func (m *Money) recorded(ctx context.Context, org string, ids []string) map[string]spend.Owned {
	o, cfg := m.org(org), m.deps.Config().Audit
	if o == nil || cfg.File == nil {
		return nil
	}
	made, err := audit.Makers(org, audit.Files(cfg.File)...)
	if err != nil {
		m.deps.Logger.WarnContext(ctx, "the audit log cannot be read for the owners of resources", "org", org, "error", err.Error())
		return nil
	}
	all := make(map[string]spend.Owned)
	for _, id := range ids {
		r, known := made[id]
		if !known {
			continue
		}
		if k := o.Key(r.Key); k != nil && r.Team == "" {
			r.Team = k.Team
		}
		all[id] = spend.Owned{
			Owner: spend.Owner{Team: r.Team, Key: r.Key}, About: spend.About{Operation: r.Operation, Decision: r.Decision, Labels: spend.Labels(r.Labels)},
		}
	}
	return all
}
