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
	meter        metric.Meter
	duration     metric.Float64Histogram
	registration metric.Registration
}

// NewInstruments returns Instruments that export nothing until Observe is called. Its RecordDuration method is meant for the limiter's
// Deps.
func NewInstruments(meter metric.Meter) (*Instruments, error) {
	duration, err := meter.Float64Histogram("tollgate.ratelimit.store.duration",
		metric.WithUnit("s"), metric.WithDescription("Duration of exchanges with the store."))
	return &Instruments{meter: meter, duration: duration}, err
}

// RecordDuration records the duration of a request to the store.
func (n *Instruments) RecordDuration(ctx context.Context, took time.Duration) {
	n.duration.Record(ctx, took.Seconds())
}

// Observe starts to export the counters of a limiter.
func (n *Instruments) Observe(l *ratelimit.Limiter) error {
	var errs []error
	counter := func(name, unit, what string) metric.Int64Observable {
		i, err := n.meter.Int64ObservableCounter("tollgate.ratelimit."+name, metric.WithUnit(unit), metric.WithDescription(what))
		errs = append(errs, err)
		return i
	}
	gauge := func(name, unit, what string) metric.Int64Observable {
		i, err := n.meter.Int64ObservableGauge("tollgate.ratelimit."+name, metric.WithUnit(unit), metric.WithDescription(what))
		errs = append(errs, err)
		return i
	}
	decisions := counter("decisions", "{decision}", "Rate limit decisions by class, source and outcome.")
	exchanges := counter("store.exchanges", "{exchange}", "Exchanges with the store.")
	calls := counter("store.calls", "{call}", "Calls sent to the store; divide by exchanges for the average batch size.")
	failed := counter("store.errors", "{exchange}", "Exchanges that failed.")
	restarts := counter("store.restarts", "{exchange}", "Exchanges refused because the store had restarted.")
	away := gauge("store.away", "1", "1 while the store is not used because it does not respond.")
	gateways := gauge("gateways", "{gateway}", "Number of gateways that share the store, as last reported.")
	scopes := gauge("scopes", "{scope}", "Scopes in memory.")
	held := gauge("held", "{permit}", "Permits of the current minute that are leased and unused.")
	var err error
	n.registration, err = n.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		c := l.Counts()
		for _, d := range c.Decisions {
			o.ObserveInt64(decisions, d.Count, metric.WithAttributes(
				attribute.String("class", string(d.Class)), attribute.String("source", string(d.Source)), attribute.String("outcome", d.Outcome)))
		}
		down := int64(0)
		if c.Down {
			down = 1
		}
		o.ObserveInt64(exchanges, c.Exchanges)
		o.ObserveInt64(calls, c.Calls)
		o.ObserveInt64(failed, c.Failed)
		o.ObserveInt64(restarts, c.Restarts)
		o.ObserveInt64(away, down)
		o.ObserveInt64(gateways, c.Gateways)
		o.ObserveInt64(scopes, c.Scopes)
		o.ObserveInt64(held, c.Held)
		return nil
	}, decisions, exchanges, calls, failed, restarts, away, gateways, scopes, held)
	return errors.Join(append(errs, err)...)
}

// Stop ends the export that Observe has started.
func (n *Instruments) Stop() {
	if n.registration != nil {
		_ = n.registration.Unregister() // fails only if it is not registered
	}
}
