package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Source is something that a gateway works from and keeps looking at: the configuration, an organisation's bundle or price list, the keys of
// issuers, the keys made at run time.
type Source struct {
	// Kind and Org name the source; Org is empty for a source of all organisations.
	Kind, Org string
	// LastSuccess is when the source was last good; zero for never.
	LastSuccess time.Time
	// Failed reports that the last look at the source failed.
	Failed bool
}

// MeasureSources makes metrics of how sources are doing. There are as many series as list returns sources.
func MeasureSources(m metric.Meter, now func() time.Time, list func() []Source) {
	age := Must(m.Float64ObservableGauge("tollgate.source.age", metric.WithUnit("s"),
		metric.WithDescription("Time since a configuration was last taken, a bundle last seen to be current, a price list or the keys made at run time last read.")))
	failed := Must(m.Int64ObservableGauge("tollgate.source.failed",
		metric.WithDescription("1 when the last look at a configuration, a bundle, a price list or the keys made at run time failed, so that the last good one stays.")))
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
