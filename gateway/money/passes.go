package money

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// passes exports metrics about the reconciliation passes that this gateway makes. If another gateway makes the passes, the values expire
// after valid, the time of two passes.
type passes struct {
	*Deps

	valid time.Duration
	drift metric.Int64Counter
	sums  metric.Int64Counter
	bills metric.Float64Counter

	mu   sync.Mutex // guards last
	last map[string]pass
}

// pass is the report of the latest pass over an organisation's ledger, with its time.
type pass struct {
	at     time.Time
	report ledger.Report
}

func newPasses(d *Deps, valid time.Duration) *passes {
	p, m := &passes{Deps: d, valid: valid, last: make(map[string]pass)}, d.Meter
	p.drift = telemetry.Must(m.Int64Counter("tollgate.ledger.drift",
		metric.WithDescription("Number of resources that reconciliation added to the ledger or found removed or changed outside the gateway.")))
	p.sums = telemetry.Must(m.Int64Counter("tollgate.ledger.repairs",
		metric.WithDescription("Number of scopes whose sums did not match their records and were repaired.")))
	p.bills = telemetry.Must(m.Float64Counter("tollgate.ledger.corrected", metric.WithUnit("USD"),
		metric.WithDescription("Amount by which recorded costs were corrected to match the platform's bills.")))
	gauge := func(name, description string) metric.Int64ObservableGauge {
		return telemetry.Must(m.Int64ObservableGauge(name, metric.WithDescription(description)))
	}
	open := gauge("tollgate.ledger.open", "Reservations whose call has an unknown outcome.")
	missing := gauge("tollgate.ledger.missing", "Resources missing from the platform's list that are not known to be gone.")
	implausible := gauge("tollgate.ledger.implausible", "Resources with an impossible value in the platform's list, such as 0 GPUs.")
	unowned := gauge("tollgate.ledger.unowned", "Resources without an owner, counted for the organisation only.")
	telemetry.Must(m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		for org, pass := range p.last {
			if p.Now().Sub(pass.at) > p.valid {
				continue
			}
			r, of := &pass.report, metric.WithAttributes(attribute.String("org", org))
			o.ObserveInt64(open, int64(r.Open), of)
			o.ObserveInt64(missing, int64(r.Missing), of)
			o.ObserveInt64(implausible, int64(r.Implausible), of)
			o.ObserveInt64(unowned, int64(r.Unowned), of)
		}
		return nil
	}, open, missing, implausible, unowned))
	return p
}

// measureHolds exports metrics about the holds of organisations.
func measureHolds(m metric.Meter, outbox *ledger.Outbox) {
	age := telemetry.Must(m.Float64ObservableGauge("tollgate.ledger.hold_age", metric.WithUnit("s"),
		metric.WithDescription("Age of the oldest reservation, by whether its call is in progress or has an unknown outcome.")))
	overdue := telemetry.Must(m.Int64ObservableGauge("tollgate.ledger.overdue",
		metric.WithDescription("Number of reservations held by this gateway for calls that have exceeded the maximum duration.")))
	queued := telemetry.Must(m.Int64ObservableGauge("tollgate.ledger.queued",
		metric.WithDescription("Settlements of this gateway that the ledger's store has not accepted yet.")))
	telemetry.Must(m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for org, s := range outbox.Status() {
			of := attribute.String("org", org)
			o.ObserveFloat64(age, s.InFlight.Seconds(), metric.WithAttributes(of, attribute.String("state", "in_flight")))
			o.ObserveFloat64(age, s.Open.Seconds(), metric.WithAttributes(of, attribute.String("state", "open")))
			o.ObserveInt64(overdue, int64(s.Overdue), metric.WithAttributes(of))
			o.ObserveInt64(queued, int64(s.Queued), metric.WithAttributes(of))
		}
		return nil
	}, age, overdue, queued))
}

// repaired counts the scopes whose sums a pass has repaired.
func (p *passes) repaired(ctx context.Context, org string, n int) {
	p.sums.Add(ctx, int64(n), metric.WithAttributes(attribute.String("org", org)))
}

// done stores the report of a pass, and returns the previous one.
func (p *passes) done(ctx context.Context, org string, r *ledger.Report) ledger.Report {
	p.mu.Lock()
	before := p.last[org].report
	p.last[org] = pass{p.Now(), *r}
	p.mu.Unlock()
	for direction, micro := range map[string]int64{"more": r.Corrections.Added, "less": r.Corrections.Subtracted} {
		p.bills.Add(ctx, float64(micro)/1e6, metric.WithAttributes(attribute.String("org", org), attribute.String("direction", direction)))
	}
	for kind, n := range map[string]int{"adopted": r.Adopted, "removed": r.Removed, "changed": r.Changed} {
		if r.Rebuilt {
			n = 0 // in a ledger that was empty, everything differs
		}
		p.drift.Add(ctx, int64(n), metric.WithAttributes(attribute.String("org", org), attribute.String("kind", kind)))
	}
	return before
}

// WarnAboutDurability logs the reasons why the store may lose the ledger, if any organisation has a ledger.
func (m *Money) WarnAboutDurability(ctx context.Context) {
	if !m.HasLedgers() {
		return
	}
	if m.Journal == nil {
		m.deps.Logger.WarnContext(ctx, "no owner journal: owners of resources will be lost if Redis and all gateways are lost together; "+
			"set --state or STATE_DIRECTORY to a directory that outlives the process")
	}
	risks, err := m.deps.Accounts.DurabilityRisks(ctx)
	if err != nil {
		m.deps.Logger.DebugContext(ctx, "cannot determine whether the store is persistent", "error", err.Error())
	}
	prefix := m.deps.Config().Redis.Prefix.OldLedger()
	earlier, err := m.deps.Accounts.LegacyLedgers(ctx, prefix, m.deps.Budgeted())
	if err != nil {
		m.deps.Logger.DebugContext(ctx, "cannot check for ledgers of earlier versions", "error", err.Error())
	}
	for _, org := range earlier {
		m.deps.Logger.WarnContext(ctx, "Redis has a ledger of an unsupported earlier version; rebuilding the ledger from the platform",
			"org", org, "prefix", prefix)
	}
	for _, risk := range risks {
		m.deps.Logger.WarnContext(ctx, "the spending ledger is not durable", "reason", risk)
	}
}
