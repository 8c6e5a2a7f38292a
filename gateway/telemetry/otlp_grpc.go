package telemetry

import (
	"context"
	"net/url"

	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// dial returns the address and the transport credentials of the receiver.
func dial(r *settings.Receiver) (host string, how credentials.TransportCredentials, err error) {
	u, err := url.Parse(r.Endpoint)
	if err != nil {
		return "", nil, err
	}
	c, err := r.TLS()
	if err != nil {
		return "", nil, err
	}
	if c == nil {
		return u.Host, insecure.NewCredentials(), nil
	}
	return u.Host, credentials.NewTLS(c), nil
}

func grpcSpans(ctx context.Context, r *settings.Receiver) (sdktrace.SpanExporter, error) {
	host, how, err := dial(r)
	if err != nil {
		return nil, err
	}
	return otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint(host), otlptracegrpc.WithTLSCredentials(how),
		otlptracegrpc.WithTimeout(exportTimeout), otlptracegrpc.WithHeaders(r.HeaderValues()))
}

func grpcMetrics(ctx context.Context, r *settings.Receiver) (sdkmetric.Exporter, error) {
	host, how, err := dial(r)
	if err != nil {
		return nil, err
	}
	return otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpoint(host), otlpmetricgrpc.WithTLSCredentials(how),
		otlpmetricgrpc.WithTimeout(exportTimeout), otlpmetricgrpc.WithHeaders(r.HeaderValues()))
}

func grpcLogs(ctx context.Context, r *settings.Receiver) (sdklog.Exporter, error) {
	host, how, err := dial(r)
	if err != nil {
		return nil, err
	}
	return otlploggrpc.New(ctx, otlploggrpc.WithEndpoint(host), otlploggrpc.WithTLSCredentials(how),
		otlploggrpc.WithTimeout(exportTimeout), otlploggrpc.WithHeaders(r.HeaderValues()), otlploggrpc.WithRetry(otlploggrpc.RetryConfig{}))
}
