package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Source is an input that the gateway reads periodically: the configuration, an organisation's bundle or price list, the
// keys of issuers, or the keys created at run time.
type Source struct {
	// Kind and Org identify the source. Org is empty for a source of all organisations.
	Kind, Org string
	// LastSuccess is the time of the last successful read. The zero time means never.
	LastSuccess time.Time
	// Failed is set if the last read failed.
	Failed bool
}

// MeasureSources registers metrics for the age and state of sources. Each source that list returns has its own series.
func MeasureSources(m metric.Meter, now func() time.Time, list func() []Source) {
	age := Must(m.Float64ObservableGauge("tollgate.source.age", metric.WithUnit("s"),
		metric.WithDescription("Time since a source was last read: a configuration, policy bundle, price list, or the keys created at run time. A bundle that has not changed counts as read.")))
	failed := Must(m.Int64ObservableGauge("tollgate.source.failed",
		metric.WithDescription("1 if the last read of a source failed, so that the previous version remains in use. Sources are configurations, policy bundles, price lists, and the keys created at run time.")))
	Must(m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, s := range list() {
			attrs := metric.WithAttributes(attribute.String("kind", s.Kind), attribute.String("org", s.Org))
			if !s.LastSuccess.IsZero() {
				o.ObserveFloat64(age, now().Sub(s.LastSuccess).Seconds(), attrs)
			}
			n := int64(0)
			if s.Failed {
				n = 1
			}
			o.ObserveInt64(failed, n, attrs)
		}
		return nil
	}, age, failed))
}
