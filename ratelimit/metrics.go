package ratelimit

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// counters are the numbers behind the metrics. Decisions are counted with plain
// atomics and read when metrics are collected, because recording a measurement
// costs more than deciding.
type counters struct {
	// decisions, by class, source and outcome.
	decisions [2][len(sourceList)][2]atomic.Int64
	failed    [2]atomic.Int64
	calls     atomic.Int64
	carried   atomic.Int64
	errors    atomic.Int64
	restarts  atomic.Int64
	duration  metric.Float64Histogram
	reg       metric.Registration
}

// sourceList has the sources in the order of the counters.
var sourceList = [...]Source{SourceNone, SourceRedis, SourceLease, SourceMemory, SourceLocal, SourceOpen}

func sourceIndex(s Source) int {
	switch s {
	case SourceRedis:
		return 1
	case SourceLease:
		return 2
	case SourceMemory:
		return 3
	case SourceLocal:
		return 4
	case SourceOpen:
		return 5
	case SourceNone:
	}
	return 0
}

func classIndex(c Class) int {
	if c == ClassRead {
		return 0
	}
	return 1
}

// decided counts one decision.
func (n *counters) decided(t *Take, d *Decision, err error) {
	class := classIndex(t.Class)
	if err != nil {
		if errors.Is(err, ErrUnavailable) {
			n.failed[class].Add(1)
		}
		return
	}
	outcome := 0
	if d.Allowed {
		outcome = 1
	}
	n.decisions[class][sourceIndex(d.Source)][outcome].Add(1)
}

// exchanged counts one exchange with the store that carried so many calls.
func (n *counters) exchanged(ctx context.Context, calls int, took time.Duration, err error) {
	n.calls.Add(1)
	n.carried.Add(int64(calls))
	switch {
	case errors.Is(err, ErrRestarted):
		n.restarts.Add(1)
	case err != nil:
		n.errors.Add(1)
	}
	if n.duration != nil {
		n.duration.Record(ctx, took.Seconds())
	}
}

// register makes the instruments; see docs/ratelimits.md for what they mean.
func (n *counters) register(meter metric.Meter, l *Limiter) error {
	var errs []error
	counter := func(name, unit, what string) metric.Int64ObservableCounter {
		c, err := meter.Int64ObservableCounter("tollgate.ratelimit."+name, metric.WithUnit(unit), metric.WithDescription(what))
		errs = append(errs, err)
		return c
	}
	gauge := func(name, unit, what string) metric.Int64ObservableGauge {
		g, err := meter.Int64ObservableGauge("tollgate.ratelimit."+name, metric.WithUnit(unit), metric.WithDescription(what))
		errs = append(errs, err)
		return g
	}
	decisions := counter("decisions", "{decision}", "Decisions by class, source and outcome.")
	exchanges := counter("store.exchanges", "{exchange}", "Exchanges with the store.")
	carried := counter("store.calls", "{call}", "Calls carried to the store; the ratio to exchanges is the group size.")
	failures := counter("store.errors", "{exchange}", "Exchanges that failed.")
	restarts := counter("store.restarts", "{exchange}", "Exchanges refused because the store had restarted.")
	away := gauge("store.away", "1", "1 while the store is not asked because it does not answer.")
	gateways := gauge("gateways", "{gateway}", "Gateways that share the store, as last heard.")
	scopes := gauge("scopes", "{scope}", "Scopes remembered.")
	held := gauge("held", "{permit}", "Permits of the current minute leased and not yet spent.")
	var err error
	n.duration, err = meter.Float64Histogram("tollgate.ratelimit.store.duration", metric.WithUnit("s"),
		metric.WithDescription("Time one exchange with the store takes."))
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	n.reg, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		n.observeDecisions(o, decisions)
		o.ObserveInt64(exchanges, n.calls.Load())
		o.ObserveInt64(carried, n.carried.Load())
		o.ObserveInt64(failures, n.errors.Load())
		o.ObserveInt64(restarts, n.restarts.Load())
		o.ObserveInt64(gateways, l.live.Load())
		isAway := int64(0)
		if l.breakers.away.Load() > 0 {
			isAway = 1
		}
		o.ObserveInt64(away, isAway)
		known, permits := l.totals()
		o.ObserveInt64(scopes, known)
		o.ObserveInt64(held, permits)
		return nil
	}, decisions, exchanges, carried, failures, restarts, away, gateways, scopes, held)
	return err
}

// unregister takes the instruments' callback away.
func (n *counters) unregister() {
	if n.reg != nil {
		// It fails only for a callback that is not registered.
		_ = n.reg.Unregister()
	}
}

func (n *counters) observeDecisions(o metric.Observer, decisions metric.Int64Observable) {
	observe := func(v int64, class Class, source Source, outcome string) {
		if v == 0 {
			return
		}
		o.ObserveInt64(decisions, v, metric.WithAttributes(
			attribute.String("class", string(class)),
			attribute.String("source", string(source)),
			attribute.String("outcome", outcome)))
	}
	for c, class := range [...]Class{ClassRead, ClassWrite} {
		for s, source := range sourceList {
			observe(n.decisions[c][s][0].Load(), class, source, "refused")
			observe(n.decisions[c][s][1].Load(), class, source, "admitted")
		}
		observe(n.failed[c].Load(), class, SourceNone, "unavailable")
	}
}

// totals returns the number of scopes remembered and of permits held.
func (l *Limiter) totals() (known, held int64) {
	now := l.tick()
	l.book.each(func(a *account) bool {
		known++
		if a.runs(0, now) {
			held += a.held[0]
		}
		return true
	})
	return known, held
}
