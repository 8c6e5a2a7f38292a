package operator_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/test/limits/storetest"
)

// stopped is a clock that stands still.
type stopped time.Time

func (s stopped) Now() time.Time { return time.Time(s) }

// The counters of a limiter are exported until it ends.
func TestMetrics(t *testing.T) {
	clock := stopped(time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC))
	store := storetest.NewMemory(clock.Now)
	reader := metric.NewManualReader()
	n, err := operator.NewInstruments(metric.NewMeterProvider(metric.WithReader(reader)).Meter("test"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := ratelimit.New(ratelimit.DefaultConfig(), ratelimit.Deps{Store: store, Now: clock.Now, ObserveLatency: n.RecordDuration})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Observe(l); err != nil {
		t.Fatal(err)
	}
	of := func(org string, class ratelimit.Class, limit ratelimit.Limit) ratelimit.Take {
		return ratelimit.Take{Org: org, Class: class, Scopes: []ratelimit.Scope{{Kind: ratelimit.KindOrg, ID: org, Limit: limit}}}
	}
	take := func(tk ratelimit.Take) error {
		_, err := l.Take(t.Context(), tk)
		return err
	}
	for range 5 {
		if err := take(of("acme", ratelimit.ClassRead, ratelimit.Limit{Minute: 3})); err != nil {
			t.Fatal(err)
		}
	}
	if err := take(ratelimit.Take{Org: "exempt"}); err != nil {
		t.Fatal(err)
	}
	store.SetFault(errors.New("away"))
	if take(of("org_b", ratelimit.ClassWrite, ratelimit.Limit{Day: 1})) == nil {
		t.Fatal("a write passed without the store")
	}
	want := map[string]float64{
		"decisions class=read outcome=admitted source=redis":    3,
		"decisions class=read outcome=refused source=memory":    2,
		"decisions class=write outcome=admitted source=none":    1,
		"decisions class=write outcome=unavailable source=none": 1,
		"gateways":        1,
		"held":            0,
		"scopes":          1,
		"store.away":      0,
		"store.calls":     4,
		"store.duration":  4,
		"store.errors":    1,
		"store.exchanges": 4,
		"store.restarts":  0,
	}
	if diff := cmp.Diff(want, collect(t, reader)); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	n.Stop()
	if got := collect(t, reader); got["scopes"] != 0 || len(got) > 1 {
		t.Errorf("after its end: %v", got)
	}
}

// collect returns all data points by name and attributes.
func collect(t *testing.T, reader *metric.ManualReader) map[string]float64 {
	t.Helper()
	var rm metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &rm); err != nil {
		t.Fatal(err)
	}
	got := make(map[string]float64)
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			name := strings.TrimPrefix(m.Name, "tollgate.ratelimit.")
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					key := name
					for _, kv := range p.Attributes.ToSlice() {
						key += " " + string(kv.Key) + "=" + kv.Value.AsString()
					}
					got[key] = float64(p.Value)
				}
			case metricdata.Gauge[int64]:
				got[name] = float64(data.DataPoints[0].Value)
			case metricdata.Histogram[float64]:
				got[name] = float64(data.DataPoints[0].Count)
			default:
				t.Errorf("%s has data of type %T", m.Name, m.Data)
			}
		}
	}
	return got
}
