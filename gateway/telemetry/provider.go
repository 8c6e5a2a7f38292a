package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/bridges/otelslog"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/metric"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// Process identifies the process in telemetry.
type Process struct{ Version, Instance string }

// Providers holds the OpenTelemetry providers of a process and the Prometheus registry for its metrics.
type Providers struct {
	resource *resource.Resource
	registry *prometheus.Registry
	metrics  metric.MeterProvider
	traces   trace.TracerProvider
	sampler  sampler
	logs     log.LoggerProvider // nil if logs are not exported
	// flush contains the functions that flush and end the exports.
	flush []func(context.Context) error
}

// sampler samples a fraction of traces that can be changed.
type sampler struct {
	of atomic.Pointer[sdktrace.Sampler]
}

// ShouldSample implements sdktrace.Sampler.
func (s *sampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	return (*s.of.Load()).ShouldSample(p)
}

// Description implements sdktrace.Sampler.
func (s *sampler) Description() string { return (*s.of.Load()).Description() }

// Sample sets the fraction of traces to sample, from 0 to 1.
func (p *Providers) Sample(ratio float64) {
	of := sdktrace.TraceIDRatioBased(ratio)
	p.sampler.of.Store(&of)
}

// NewProviders returns the providers for a configuration. It does not dial: exporters connect when they have data to send, and drop
// data that cannot be sent.
func NewProviders(ctx context.Context, cfg settings.Telemetry, of Process) (*Providers, error) {
	p := &Providers{
		resource: resource.NewSchemaless(semconv.ServiceName("tollgate"), semconv.ServiceVersion(of.Version),
			semconv.ServiceInstanceID(of.Instance)),
		registry: prometheus.NewRegistry(),
		traces:   noop.NewTracerProvider(), // spans that are not exported are pure cost
	}
	p.registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), buildInfo(of.Version))
	scraped, err := otelprom.New(otelprom.WithRegisterer(p.registry), otelprom.WithoutScopeInfo())
	if err != nil {
		return nil, fmt.Errorf("telemetry: prometheus: %w", err)
	}
	readers := []sdkmetric.Option{sdkmetric.WithReader(scraped), sdkmetric.WithResource(p.resource), sdkmetric.WithView(durations())}
	p.Sample(cfg.SampleRatio)
	if cfg.OTLP.Endpoint != "" {
		pushed, err := p.export(ctx, &cfg)
		if err != nil {
			return nil, fmt.Errorf("telemetry: otlp: %w", err)
		}
		readers = append(readers, pushed...)
	}
	m := sdkmetric.NewMeterProvider(readers...)
	p.metrics, p.flush = m, append(p.flush, m.Shutdown)
	return p, nil
}

// buildInfo is a metric with the value 1 and the build information as labels.
func buildInfo(version string) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tollgate_build_info", Help: "Always 1, labeled with the running version.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	}, func() float64 { return 1 })
}

// export starts the exports and returns the metric readers for them.
func (p *Providers) export(ctx context.Context, cfg *settings.Telemetry) (readers []sdkmetric.Option, err error) {
	spans, err := spans(ctx, &cfg.OTLP.Receiver)
	if err != nil {
		return nil, err
	}
	t := sdktrace.NewTracerProvider(sdktrace.WithResource(p.resource), sdktrace.WithBatcher(spans),
		sdktrace.WithSampler(sdktrace.ParentBased(&p.sampler)))
	p.traces, p.flush = t, append(p.flush, t.Shutdown)
	if cfg.OTLP.Logs {
		records, err := Logs(ctx, &cfg.OTLP.Receiver)
		if err != nil {
			return nil, err
		}
		l := sdklog.NewLoggerProvider(sdklog.WithResource(p.resource), sdklog.WithProcessor(sdklog.NewBatchProcessor(records)))
		p.logs, p.flush = l, append(p.flush, l.Shutdown)
	}
	if cfg.OTLP.Metrics == 0 {
		return nil, nil
	}
	pushed, err := metrics(ctx, &cfg.OTLP.Receiver)
	if err != nil {
		return nil, err
	}
	return []sdkmetric.Option{sdkmetric.WithReader(
		sdkmetric.NewPeriodicReader(pushed, sdkmetric.WithInterval(cfg.OTLP.Metrics), sdkmetric.WithTimeout(exportTimeout)))}, nil
}

// Resource identifies the process in all exports.
func (p *Providers) Resource() *resource.Resource { return p.resource }

// Logged returns a handler that passes records to h and, if OTLP log export is configured, also exports the records that h accepts.
func (p *Providers) Logged(h slog.Handler) slog.Handler {
	if p.logs == nil {
		return h
	}
	return both{h, otelslog.NewHandler(scope, otelslog.WithLoggerProvider(p.logs))}
}

// Meter returns the metric provider.
func (p *Providers) Meter() metric.MeterProvider { return p.metrics }

// Tracer returns the trace provider.
func (p *Providers) Tracer() trace.TracerProvider { return p.traces }

// Handler serves the metrics in the Prometheus text format.
func (p *Providers) Handler() http.Handler {
	return promhttp.HandlerFor(p.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// Shutdown flushes buffered data and stops the exporters.
func (p *Providers) Shutdown(ctx context.Context) error {
	errs := make([]error, len(p.flush))
	var group sync.WaitGroup
	for i, flush := range p.flush {
		group.Go(func() { errs[i] = flush(ctx) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// durations sets the buckets of histograms in seconds: from a tenth of a millisecond, the duration of a refusal, to five minutes,
// the longest duration of a stream.
func durations() sdkmetric.View {
	return sdkmetric.NewView(
		sdkmetric.Instrument{Kind: sdkmetric.InstrumentKindHistogram, Unit: "s"},
		sdkmetric.Stream{Aggregation: sdkmetric.AggregationExplicitBucketHistogram{Boundaries: []float64{
			.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300,
		}}},
	)
}
