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

// passes measures the findings of passes over ledgers. The gateway that makes them
// measures; another one's last word ends with the next pass but one.
type passes struct {
	*Deps

	valid time.Duration
	drift metric.Int64Counter
	sums  metric.Int64Counter
	bills metric.Float64Counter

	mu   sync.Mutex // guards last
	last map[string]pass
}

// pass is the finding of the last one over an organisation's ledger, and its time.
type pass struct {
	at     time.Time
	report ledger.Report
}

func newPasses(d *Deps, valid time.Duration) *passes {
	p, m := &passes{Deps: d, valid: valid, last: make(map[string]pass)}, d.Meter
	p.drift = telemetry.Must(m.Int64Counter("tollgate.ledger.drift",
		metric.WithDescription("Resources that the ledger had otherwise than the platform: adopted, removed or changed without the gateway.")))
	p.sums = telemetry.Must(m.Int64Counter("tollgate.ledger.repairs",
		metric.WithDescription("Sums of scopes that differed from what they are sums of, and were repaired.")))
	p.bills = telemetry.Must(m.Float64Counter("tollgate.ledger.corrected", metric.WithUnit("USD"),
		metric.WithDescription("By how much what was counted was corrected, because the platform has billed more or less.")))
	gauge := func(name, description string) metric.Int64ObservableGauge {
		return telemetry.Must(m.Int64ObservableGauge(name, metric.WithDescription(description)))
	}
	open := gauge("tollgate.ledger.open", "Reservations of calls whose end is not known.")
	missing := gauge("tollgate.ledger.missing", "Resources that the platform's list lacks and that are not known to be gone.")
	implausible := gauge("tollgate.ledger.implausible", "Resources for which the platform's list has an impossible value, such as a count of 0 GPUs.")
	unowned := gauge("tollgate.ledger.unowned", "Resources that count for the organisation alone, because none of its callers made them.")
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

// measureHolds measures the findings of looks at the holds of organisations.
func measureHolds(m metric.Meter, outbox *ledger.Outbox) {
	age := telemetry.Must(m.Float64ObservableGauge("tollgate.ledger.hold_age", metric.WithUnit("s"),
		metric.WithDescription("Age of the oldest reservation of a call that is under way, and of one whose end is not known.")))
	overdue := telemetry.Must(m.Int64ObservableGauge("tollgate.ledger.overdue",
		metric.WithDescription("Reservations of this gateway's calls that have not ended in the time a call may take.")))
	queued := telemetry.Must(m.Int64ObservableGauge("tollgate.ledger.queued",
		metric.WithDescription("Ends of this gateway's calls that the ledger's store has not taken yet.")))
	telemetry.Must(m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for org, s := range outbox.Status() {
			of := attribute.String("org", org)
			o.ObserveFloat64(age, s.InFlight.Seconds(), metric.WithAttributes(of, attribute.String("state", "noted")))
			o.ObserveFloat64(age, s.Open.Seconds(), metric.WithAttributes(of, attribute.String("state", "open")))
			o.ObserveInt64(overdue, int64(s.Overdue), metric.WithAttributes(of))
			o.ObserveInt64(queued, int64(s.Queued), metric.WithAttributes(of))
		}
		return nil
	}, age, overdue, queued))
}

// repaired counts the sums that a pass has repaired.
func (p *passes) repaired(ctx context.Context, org string, n int) {
	p.sums.Add(ctx, int64(n), metric.WithAttributes(attribute.String("org", org)))
}

// done takes the report of each pass, and returns the one before.
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
			n = 0 // a ledger that was empty differs in everything
		}
		p.drift.Add(ctx, int64(n), metric.WithAttributes(attribute.String("org", org), attribute.String("kind", kind)))
	}
	return before
}

// WarnAboutDurability says in the log why the store may lose the ledger, if an organisation
// has budgets.
func (m *Money) WarnAboutDurability(ctx context.Context) {
	if !m.HasBudgets() {
		return
	}
	if m.Journal == nil {
		m.deps.Logger.WarnContext(ctx, "owners of resources are lost if Redis and all gateways are lost together: the gateway has no journal of owners; "+
			"set --state or STATE_DIRECTORY to a directory that outlives the process")
	}
	risks, err := m.deps.Accounts.DurabilityRisks(ctx)
	if err != nil {
		m.deps.Logger.DebugContext(ctx, "it is not known whether the store persists", "error", err.Error())
	}
	prefix := m.deps.Config().Redis.Prefix.OldLedger()
	earlier, err := m.deps.Accounts.LegacyLedgers(ctx, prefix, m.deps.Budgeted())
	if err != nil {
		m.deps.Logger.DebugContext(ctx, "cannot look for ledgers of earlier versions", "error", err.Error())
	}
	for _, org := range earlier {
		m.deps.Logger.WarnContext(ctx, "Redis has a ledger of an earlier version, which this version does not read; the ledger is rebuilt from the platform", "org", org, "prefix", prefix)
	}
	for _, risk := range risks {
		m.deps.Logger.WarnContext(ctx, "the ledger of spending may be lost", "reason", risk)
	}
}
