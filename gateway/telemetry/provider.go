package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Config says where telemetry goes.
type Config struct {
	// OTLP exports traces; nothing is exported without an endpoint.
	OTLP OTLPConfig `yaml:"otlp" doc:"export of traces by OTLP over HTTP"`
	// SampleRatio is the share of exchanges traced, 0 to 1.
	SampleRatio float64 `yaml:"sample_ratio" doc:"share of exchanges traced, 0 to 1" default:"0.01"`
}

// OTLPConfig is one OTLP receiver.
type OTLPConfig struct {
	// Endpoint is the URL of the receiver, e.g. "http://127.0.0.1:4318";
	// empty exports nothing.
	Endpoint string `yaml:"endpoint" doc:"URL of the OTLP/HTTP receiver; empty exports nothing"`
}

// Validate reports every fault of the configuration.
func (c Config) Validate() error {
	var errs []error
	if c.SampleRatio < 0 || c.SampleRatio > 1 {
		errs = append(errs, fault.Errorf("sample_ratio", "must be between 0 and 1"))
	}
	if e := c.OTLP.Endpoint; e != "" {
		if u, err := url.Parse(e); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			errs = append(errs, fault.Errorf("otlp.endpoint", "must be an http or https URL"))
		}
	}
	return errors.Join(errs...)
}

// Providers holds the OpenTelemetry providers of a process and the Prometheus
// registry behind its metrics.
type Providers struct {
	registry *prometheus.Registry
	metrics  *sdkmetric.MeterProvider
	// traces makes spans, and flush ends their export.
	traces trace.TracerProvider
	flush  func(context.Context) error
}

// NewProviders builds the providers. It does not dial: the exporter connects
// when it has something to send, and drops what it cannot send.
func NewProviders(ctx context.Context, cfg Config, version string) (*Providers, error) {
	res := resource.NewSchemaless(
		attribute.String("service.name", "tollgate"),
		attribute.String("service.version", version),
	)
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	exp, err := otelprom.New(otelprom.WithRegisterer(reg), otelprom.WithoutScopeInfo())
	if err != nil {
		return nil, fmt.Errorf("telemetry: prometheus: %w", err)
	}
	p := &Providers{registry: reg, metrics: sdkmetric.NewMeterProvider(sdkmetric.WithReader(exp), sdkmetric.WithResource(res), sdkmetric.WithView(durations()))}

	if cfg.OTLP.Endpoint == "" { // spans that go nowhere cost more than they say
		p.traces, p.flush = noop.NewTracerProvider(), func(context.Context) error { return nil }
		return p, nil
	}
	spans, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(tracesURL(cfg.OTLP.Endpoint)), otlptracehttp.WithTimeout(exportTimeout))
	if err != nil {
		return nil, fmt.Errorf("telemetry: otlp: %w", err)
	}
	traces := sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithBatcher(spans),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(cfg.SampleRatio))))
	p.traces, p.flush = traces, traces.Shutdown
	return p, nil
}

// exportTimeout bounds one export.
const exportTimeout = 5 * time.Second

// tracesURL is where a receiver takes traces: the path of the OTLP
// specification, unless the endpoint names its own.
func tracesURL(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil || strings.Trim(u.Path, "/") != "" {
		return endpoint
	}
	return u.JoinPath("v1", "traces").String()
}

// Meter returns the metric provider.
func (p *Providers) Meter() metric.MeterProvider { return p.metrics }

// Tracer returns the trace provider.
func (p *Providers) Tracer() trace.TracerProvider { return p.traces }

// Handler serves the metrics in the Prometheus text format.
func (p *Providers) Handler() http.Handler {
	return promhttp.HandlerFor(p.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// Shutdown flushes what is buffered and stops the exporters.
func (p *Providers) Shutdown(ctx context.Context) error {
	return errors.Join(p.flush(ctx), p.metrics.Shutdown(ctx))
}

// durations gives histograms of seconds buckets from a tenth of a millisecond, which
// is what a refusal takes, to five minutes, which is what a stream may.
func durations() sdkmetric.View {
	return sdkmetric.NewView(
		sdkmetric.Instrument{Kind: sdkmetric.InstrumentKindHistogram, Unit: "s"},
		sdkmetric.Stream{Aggregation: sdkmetric.AggregationExplicitBucketHistogram{Boundaries: []float64{
			.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300,
		}}},
	)
}
