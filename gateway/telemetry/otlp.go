package telemetry

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// exportTimeout limits one export.
const exportTimeout = 5 * time.Second

func spans(ctx context.Context, r *settings.Receiver) (sdktrace.SpanExporter, error) {
	if r.GRPC() {
		return grpcSpans(ctx, r)
	}
	c, err := r.TLS()
	if err != nil {
		return nil, err
	}
	return otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(r.Address(settings.Traces)), otlptracehttp.WithTimeout(exportTimeout),
		otlptracehttp.WithHeaders(r.HeaderValues()), otlptracehttp.WithTLSClientConfig(c))
}

func metrics(ctx context.Context, r *settings.Receiver) (sdkmetric.Exporter, error) {
	if r.GRPC() {
		return grpcMetrics(ctx, r)
	}
	c, err := r.TLS()
	if err != nil {
		return nil, err
	}
	return otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(r.Address(settings.Metrics)), otlpmetrichttp.WithTimeout(exportTimeout),
		otlpmetrichttp.WithHeaders(r.HeaderValues()), otlpmetrichttp.WithTLSClientConfig(c))
}

// reader returns a reader that exports metrics to the receiver periodically.
func reader(ctx context.Context, r *settings.Receiver, every time.Duration) (sdkmetric.Reader, error) {
	e, err := metrics(ctx, r)
	if err != nil {
		return nil, err
	}
	return sdkmetric.NewPeriodicReader(e, sdkmetric.WithInterval(every), sdkmetric.WithTimeout(exportTimeout)), nil
}

// Logs returns an exporter of log records. It makes one attempt per batch, so that the caller can decide how to handle a failure.
func Logs(ctx context.Context, r *settings.Receiver) (sdklog.Exporter, error) {
	e, err := logs(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("otlp: %w", err)
	}
	return e, nil
}

func logs(ctx context.Context, r *settings.Receiver) (sdklog.Exporter, error) {
	if r.GRPC() {
		return grpcLogs(ctx, r)
	}
	c, err := r.TLS()
	if err != nil {
		return nil, err
	}
	return otlploghttp.New(ctx, otlploghttp.WithEndpointURL(r.Address(settings.Logs)), otlploghttp.WithTimeout(exportTimeout),
		otlploghttp.WithHeaders(r.HeaderValues()), otlploghttp.WithTLSClientConfig(c), otlploghttp.WithRetry(otlploghttp.RetryConfig{}))
}
