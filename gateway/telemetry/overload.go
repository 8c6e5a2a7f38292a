package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tollgate-dev/tollgate/gateway/overload"
)

// MeasureGate registers metrics of the gateway's concurrency limits.
func MeasureGate(m metric.Meter, gate *overload.Gate) {
	slots := Must(m.Int64ObservableGauge("tollgate.overload.slots",
		metric.WithDescription("Requests in progress by state, and their limits.")))
	waiting := Must(m.Int64ObservableGauge("tollgate.overload.waiting", metric.WithDescription("Requests waiting for admission.")))
	shed := Must(m.Int64ObservableCounter("tollgate.overload.shed", metric.WithDescription("Requests refused because of overload.")))
	Must(m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := gate.Stats()
		for state, n := range map[string]int{"working": s.Working, "open": s.Open, "working_limit": s.Limits.Working, "open_limit": s.Limits.Open} {
			o.ObserveInt64(slots, int64(n), metric.WithAttributes(attribute.String("state", state)))
		}
		for _, p := range overload.Priorities() {
			o.ObserveInt64(waiting, int64(s.Waiting[p]), metric.WithAttributes(attribute.Stringer("priority", p)))
			for _, r := range overload.Reasons() {
				o.ObserveInt64(shed, s.Shed[p][r], metric.WithAttributes(attribute.Stringer("priority", p), attribute.Stringer("reason", r)))
			}
		}
		return nil
	}, slots, waiting, shed))
}
