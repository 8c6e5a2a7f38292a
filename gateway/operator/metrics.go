package operator

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Instruments export the counters of a ratelimit.Limiter, and the duration of its requests to the store, as metrics.
type Instruments struct {
	meter    metric.Meter
	duration metric.Float64Histogram

	decisions, exchanges, calls, failed, restarts metric.Int64ObservableCounter
	away, gateways, scopes, held                  metric.Int64ObservableGauge

	registration metric.Registration
}

// NewInstruments returns Instruments that export nothing until Observe is called. Its RecordDuration method is meant for the limiter's
// Deps.
func NewInstruments(meter metric.Meter) (*Instruments, error) {
	n := &Instruments{meter: meter}
	var errs []error
	counter := func(to *metric.Int64ObservableCounter, name, unit, what string) {
		var err error
		*to, err = meter.Int64ObservableCounter("tollgate.ratelimit."+name, metric.WithUnit(unit), metric.WithDescription(what))
		errs = append(errs, err)
	}
	gauge := func(to *metric.Int64ObservableGauge, name, unit, what string) {
		var err error
		*to, err = meter.Int64ObservableGauge("tollgate.ratelimit."+name, metric.WithUnit(unit), metric.WithDescription(what))
		errs = append(errs, err)
	}
	counter(&n.decisions, "decisions", "{decision}", "Rate limit decisions by class, source and outcome.")
	counter(&n.exchanges, "store.exchanges", "{exchange}", "Exchanges with the store.")
	counter(&n.calls, "store.calls", "{call}", "Calls sent to the store; divide by exchanges for the average batch size.")
	counter(&n.failed, "store.errors", "{exchange}", "Exchanges that failed.")
	counter(&n.restarts, "store.restarts", "{exchange}", "Exchanges refused because the store had restarted.")
	gauge(&n.away, "store.away", "1", "1 while the store is not used because it does not respond.")
	gauge(&n.gateways, "gateways", "{gateway}", "Number of gateways that share the store, as last reported.")
	gauge(&n.scopes, "scopes", "{scope}", "Scopes in memory.")
	gauge(&n.held, "held", "{permit}", "Permits of the current minute that are leased and unused.")
	var err error
	n.duration, err = meter.Float64Histogram("tollgate.ratelimit.store.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of exchanges with the store."))
	return n, errors.Join(append(errs, err)...)
}

// RecordDuration records the duration of a request to the store.
func (n *Instruments) RecordDuration(ctx context.Context, took time.Duration) {
	n.duration.Record(ctx, took.Seconds())
}

// Observe starts to export the counters of a limiter.
func (n *Instruments) Observe(l *ratelimit.Limiter) error {
	var err error
	n.registration, err = n.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		n.observe(o, l.Counts())
		return nil
	}, n.decisions, n.exchanges, n.calls, n.failed, n.restarts, n.away, n.gateways, n.scopes, n.held)
	return err
}

// Stop ends the export started by Observe.
func (n *Instruments) Stop() {
	if n.registration != nil {
		_ = n.registration.Unregister() // fails only if it is not registered
	}
}

func (n *Instruments) observe(o metric.Observer, c ratelimit.Counts) {
	for _, d := range c.Decisions {
		o.ObserveInt64(n.decisions, d.Count, metric.WithAttributes(
			attribute.String("class", string(d.Class)), attribute.String("source", string(d.Source)), attribute.String("outcome", d.Outcome)))
	}
	o.ObserveInt64(n.exchanges, c.Exchanges)
	o.ObserveInt64(n.calls, c.Calls)
	o.ObserveInt64(n.failed, c.Failed)
	o.ObserveInt64(n.restarts, c.Restarts)
	o.ObserveInt64(n.gateways, c.Gateways)
	away := int64(0)
	if c.Down {
		away = 1
	}
	o.ObserveInt64(n.away, away)
	o.ObserveInt64(n.scopes, c.Scopes)
	o.ObserveInt64(n.held, c.Held)
}
