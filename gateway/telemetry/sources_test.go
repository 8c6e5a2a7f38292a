package telemetry_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// TestSourcesAreMeasured: age and failure of each, and no age of a source that was never
// good.
func TestSourcesAreMeasured(t *testing.T) {
	reader := metric.NewManualReader()
	at := time.Unix(1000, 0)
	list := []telemetry.Source{
		{Kind: "configuration", LastSuccess: at.Add(-time.Hour), Failed: true},
		{Kind: "bundle", Org: "acme", LastSuccess: at.Add(-time.Minute)},
		{Kind: "prices", Org: "acme", Failed: true},
	}
	telemetry.MeasureSources(metric.NewMeterProvider(metric.WithReader(reader)).Meter(""), func() time.Time { return at }, func() []telemetry.Source { return list })
	var rm metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &rm); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, m := range rm.ScopeMetrics[0].Metrics {
		switch d := m.Data.(type) {
		case metricdata.Gauge[float64]:
			for _, p := range d.DataPoints {
				kind, _ := p.Attributes.Value("kind")
				org, _ := p.Attributes.Value("org")
				got[fmt.Sprintf("%s %s %s", m.Name, kind.AsString(), org.AsString())] = fmt.Sprint(p.Value)
			}
		case metricdata.Gauge[int64]:
			for _, p := range d.DataPoints {
				kind, _ := p.Attributes.Value("kind")
				org, _ := p.Attributes.Value("org")
				got[fmt.Sprintf("%s %s %s", m.Name, kind.AsString(), org.AsString())] = fmt.Sprint(p.Value)
			}
		}
	}
	want := map[string]string{
		"tollgate.source.age configuration ": "3600", "tollgate.source.failed configuration ": "1",
		"tollgate.source.age bundle acme": "60", "tollgate.source.failed bundle acme": "0",
		"tollgate.source.failed prices acme": "1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}
