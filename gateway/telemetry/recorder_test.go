package telemetry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// The exporter of TestADeadReceiverHoldsNothingUp goes on trying for a while
// after the end it was given; that it does not hold its owner up is the point.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("go.opentelemetry.io/otel/sdk/trace.(*batchSpanProcessor).processQueue"),
		goleak.IgnoreAnyFunction("go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp.(*client).contextWithStop.func1"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
	)
}

func fixed() time.Time { return time.Unix(1000, 0) }

func event() *telemetry.Event {
	return &telemetry.Event{
		Start: fixed().Add(-time.Second), RequestID: "r", Door: "http", Dialect: "v2", Method: "POST", Operation: "createPod",
		Org: "acme", Status: 403, Outcome: telemetry.OutcomeRefused, Refusal: "forbidden", Denied: []string{"gpu_count"},
	}
}

func TestAnEventIsOneLineWhateverCallersWrite(t *testing.T) {
	var log strings.Builder
	reader := metric.NewManualReader()
	r := telemetry.NewRecorder(slog.New(slog.NewJSONHandler(&log, nil)), sdktrace.NewTracerProvider(), metric.NewMeterProvider(metric.WithReader(reader)), fixed)
	e := event()
	e.Agent = "x\n{\"level\":\"INFO\",\"msg\":\"approved\"}\x1b[31m\u2028" + strings.Repeat("a", 10_000)
	e.Cause = errors.New("inner\nreason")
	r.Record(t.Context(), e)
	if n := strings.Count(log.String(), "\n"); n != 1 || len(log.String()) > 2000 {
		t.Fatalf("%d lines of %d bytes, want one bounded line: %s", n, len(log.String()), log.String())
	}
	var line map[string]any
	if err := json.Unmarshal([]byte(log.String()), &line); err != nil {
		t.Fatal(err)
	}
	if line["msg"] != "exchange" || line["duration_ms"] != 1e3 || line["cause"] != "inner\nreason" {
		t.Errorf("line = %v", line)
	}
}

// No caller or pod can make series grow; organisations and teams are as many as the
// configuration has.
func TestSeriesDoNotGrowWithCallers(t *testing.T) {
	reader := metric.NewManualReader()
	r := telemetry.NewRecorder(slog.New(slog.DiscardHandler), sdktrace.NewTracerProvider(), metric.NewMeterProvider(metric.WithReader(reader)), fixed)
	for i := range 1000 {
		e := event()
		e.Key, e.RequestID, e.Agent = fmt.Sprint("key", i), strconv.Itoa(i), strconv.Itoa(i)
		r.Record(t.Context(), e)
	}
	var rm metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &rm); err != nil {
		t.Fatal(err)
	}
	for _, m := range rm.ScopeMetrics[0].Metrics {
		n := 0
		switch d := m.Data.(type) {
		case metricdata.Histogram[float64]:
			n = len(d.DataPoints)
		case metricdata.Sum[int64]:
			n = len(d.DataPoints)
		}
		if n != 1 {
			t.Errorf("%s has %d series, want 1", m.Name, n)
		}
	}
}

func TestASpanTellsTheStory(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	r := telemetry.NewRecorder(slog.New(slog.DiscardHandler), sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)), metric.NewMeterProvider(), fixed)
	ctx, _ := r.Begin(t.Context(), nil, "")
	_, child := r.Stage(ctx, "count")
	child.End()
	r.Record(ctx, event())
	got := spans.GetSpans()
	if len(got) != 2 || got[0].Name != "count" || got[1].Name != "POST createPod" || got[0].Parent.SpanID() != got[1].SpanContext.SpanID() {
		t.Errorf("spans = %v, want count inside POST createPod", got)
	}
}

// A receiver that takes connections and never answers costs requests nothing
// and does not hold the process up at its end.
func TestADeadReceiverHoldsNothingUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p, err := telemetry.NewProviders(t.Context(), settings.Telemetry{SampleRatio: 1, OTLP: settings.OTLP{Receiver: settings.Receiver{Endpoint: "http://" + l.Addr().String()}}}, telemetry.Process{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	r := telemetry.NewRecorder(slog.New(slog.DiscardHandler), p.Tracer(), p.Meter(), fixed)
	for range 5000 { // more than the exporter's queue holds
		ctx, _ := r.Begin(t.Context(), nil, "")
		r.Record(ctx, event())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Shutdown(ctx); err == nil {
		t.Error("Shutdown = nil, want it to say that spans were lost")
	}
	_ = l.Close() // ends the export under way
}

// Without a receiver there are no spans, and no ids of traces that exist nowhere.
func TestNoSpansWithoutAReceiver(t *testing.T) {
	p, err := telemetry.NewProviders(t.Context(), settings.Telemetry{SampleRatio: 1}, telemetry.Process{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	r := telemetry.NewRecorder(slog.New(slog.DiscardHandler), p.Tracer(), p.Meter(), fixed)
	if _, span := r.Begin(t.Context(), nil, ""); span.IsRecording() || span.SpanContext().IsValid() {
		t.Errorf("span = %v, want none", span.SpanContext())
	}
	if err := p.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// The share of traces that are sampled changes while the process runs.
func TestSampleRatioChanges(t *testing.T) {
	p, err := telemetry.NewProviders(t.Context(), settings.Telemetry{OTLP: settings.OTLP{Receiver: settings.Receiver{Endpoint: "http://127.0.0.1:1"}}}, telemetry.Process{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Shutdown(context.WithoutCancel(t.Context())) })
	r := telemetry.NewRecorder(slog.New(slog.DiscardHandler), p.Tracer(), p.Meter(), fixed)
	for _, ratio := range []float64{0, 1, 0} {
		p.Sample(ratio)
		if _, span := r.Begin(t.Context(), nil, ""); span.SpanContext().IsSampled() != (ratio == 1) {
			t.Errorf("with a share of %v, a trace is sampled: %t", ratio, span.SpanContext().IsSampled())
		}
	}
}

// The scraped series tell durations apart from a tenth of a millisecond on, and
// name refused callers and failed operations of the platform.
func TestScrapedSeries(t *testing.T) {
	p, err := telemetry.NewProviders(t.Context(), settings.Telemetry{}, telemetry.Process{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Shutdown(context.WithoutCancel(t.Context())) })
	r := telemetry.NewRecorder(slog.New(slog.DiscardHandler), p.Tracer(), p.Meter(), fixed)
	refused := event()
	refused.Team, refused.Start = "research", fixed().Add(-150*time.Microsecond)
	r.Record(t.Context(), refused)
	failed := event()
	failed.Outcome, failed.Status, failed.Refusal, failed.Denied, failed.UpstreamLatency = telemetry.OutcomeUpstream, 502, "upstream_failed", nil, time.Second
	r.Record(t.Context(), failed)
	w := httptest.NewRecorder()
	p.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{
		`operation="createPod",outcome="refused",status="403",le="0.0001"} 0`,
		`operation="createPod",outcome="refused",status="403",le="0.00025"} 1`,
		`tollgate_refusals_total{dialect="v2",kind="forbidden",org="acme",team="research"} 1`,
		`policy="gpu_count",team="research"} 1`,
		`tollgate_upstream_duration_seconds_count{operation="createPod",status="0"} 1`,
		`tollgate_build_info{goversion="` + runtime.Version() + `",version="test"} 1`,
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("no series %s in\n%s", want, w.Body)
		}
	}
}
