package telemetry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// exportTimeout limits one export.
const exportTimeout = 5 * time.Second

// connection returns the TLS configuration of a receiver, which is nil without TLS. For gRPC, it also returns the address and the transport
// credentials.
func connection(r *settings.Receiver) (c *tls.Config, host string, how credentials.TransportCredentials, err error) {
	u, err1 := url.Parse(r.Endpoint)
	c, err2 := r.TLS()
	if err := errors.Join(err1, err2); err != nil {
		return nil, "", nil, err
	}
	if c == nil {
		return nil, u.Host, insecure.NewCredentials(), nil
	}
	return c, u.Host, credentials.NewTLS(c), nil
}

func spans(ctx context.Context, r *settings.Receiver) (sdktrace.SpanExporter, error) {
	c, host, how, err := connection(r)
	switch {
	case err != nil:
		return nil, err
	case r.GRPC():
		return otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint(host), otlptracegrpc.WithTLSCredentials(how),
			otlptracegrpc.WithTimeout(exportTimeout), otlptracegrpc.WithHeaders(r.HeaderValues()))
	}
	return otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(r.Address(settings.Traces)), otlptracehttp.WithTimeout(exportTimeout),
		otlptracehttp.WithHeaders(r.HeaderValues()), otlptracehttp.WithTLSClientConfig(c))
}

func metrics(ctx context.Context, r *settings.Receiver) (sdkmetric.Exporter, error) {
	c, host, how, err := connection(r)
	switch {
	case err != nil:
		return nil, err
	case r.GRPC():
		return otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpoint(host), otlpmetricgrpc.WithTLSCredentials(how),
			otlpmetricgrpc.WithTimeout(exportTimeout), otlpmetricgrpc.WithHeaders(r.HeaderValues()))
	}
	return otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(r.Address(settings.Metrics)), otlpmetrichttp.WithTimeout(exportTimeout),
		otlpmetrichttp.WithHeaders(r.HeaderValues()), otlpmetrichttp.WithTLSClientConfig(c))
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
	c, host, how, err := connection(r)
	switch {
	case err != nil:
		return nil, err
	case r.GRPC():
		return otlploggrpc.New(ctx, otlploggrpc.WithEndpoint(host), otlploggrpc.WithTLSCredentials(how), otlploggrpc.WithTimeout(exportTimeout),
			otlploggrpc.WithHeaders(r.HeaderValues()), otlploggrpc.WithRetry(otlploggrpc.RetryConfig{}))
	}
	return otlploghttp.New(ctx, otlploghttp.WithEndpointURL(r.Address(settings.Logs)), otlploghttp.WithTimeout(exportTimeout),
		otlploghttp.WithHeaders(r.HeaderValues()), otlploghttp.WithTLSClientConfig(c), otlploghttp.WithRetry(otlploghttp.RetryConfig{}))
}
