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
	// LastSuccess is when the source was last read successfully; zero means never.
	LastSuccess time.Time
	// Failed is set if the last read failed.
	Failed bool
}

// MeasureSources registers metrics for the age and state of sources. The number of series equals the number of sources returned by
// list.
func MeasureSources(m metric.Meter, now func() time.Time, list func() []Source) {
	age := Must(m.Float64ObservableGauge("tollgate.source.age", metric.WithUnit("s"),
		metric.WithDescription("Time since a configuration was last loaded, a bundle last confirmed to be current, or a price list or the keys created at run time last read.")))
	failed := Must(m.Int64ObservableGauge("tollgate.source.failed",
		metric.WithDescription("1 if the last read of a configuration, a bundle, a price list or the keys created at run time failed, so that the last valid one stays in use.")))
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
