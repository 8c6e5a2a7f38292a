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

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Protocol is how a receiver is spoken to.
type Protocol string

// Protocols. The zero Protocol is that of the endpoint's port.
const (
	ProtocolHTTP Protocol = "http"
	ProtocolGRPC Protocol = "grpc"
)

// grpcPort is the port that receivers have for OTLP/gRPC by default.
const grpcPort = "4317"

// grpc reports whether the receiver is spoken to by gRPC.
func (r *Receiver) grpc() bool {
	u, err := url.Parse(r.Endpoint)
	return r.Protocol == ProtocolGRPC || r.Protocol == "" && err == nil && u.Port() == grpcPort
}

// validateProtocol reports the faults of the protocol, and of an endpoint that it does not
// fit.
func (r *Receiver) validateProtocol(errs *fault.Found) {
	errs.If(r.Protocol != "" && r.Protocol != ProtocolHTTP && r.Protocol != ProtocolGRPC, "protocol", "must be http or grpc, got %q", string(r.Protocol))
	u, err := url.Parse(r.Endpoint)
	if err != nil || !r.grpc() || r.Endpoint == "" {
		return
	}
	errs.If(u.Port() == "", "endpoint", "must name a port with protocol grpc, such as %s", grpcPort)
	errs.If(u.Path != "" && u.Path != "/" || u.RawQuery != "", "endpoint", "must have no path with protocol grpc")
}

// dial returns the address of the receiver, and how it is dialled.
func (r *Receiver) dial() (host string, how credentials.TransportCredentials, err error) {
	u, err := url.Parse(r.Endpoint)
	if err != nil {
		return "", nil, err
	}
	c, err := r.tls()
	if err != nil {
		return "", nil, err
	}
	if c == nil {
		return u.Host, insecure.NewCredentials(), nil
	}
	return u.Host, credentials.NewTLS(c), nil
}

func (r *Receiver) grpcSpans(ctx context.Context) (sdktrace.SpanExporter, error) {
	host, how, err := r.dial()
	if err != nil {
		return nil, err
	}
	return otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint(host), otlptracegrpc.WithTLSCredentials(how),
		otlptracegrpc.WithTimeout(exportTimeout), otlptracegrpc.WithHeaders(r.headers()))
}

func (r *Receiver) grpcMetrics(ctx context.Context) (sdkmetric.Exporter, error) {
	host, how, err := r.dial()
	if err != nil {
		return nil, err
	}
	return otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpoint(host), otlpmetricgrpc.WithTLSCredentials(how),
		otlpmetricgrpc.WithTimeout(exportTimeout), otlpmetricgrpc.WithHeaders(r.headers()))
}

func (r *Receiver) grpcLogs(ctx context.Context) (sdklog.Exporter, error) {
	host, how, err := r.dial()
	if err != nil {
		return nil, err
	}
	return otlploggrpc.New(ctx, otlploggrpc.WithEndpoint(host), otlploggrpc.WithTLSCredentials(how),
		otlploggrpc.WithTimeout(exportTimeout), otlploggrpc.WithHeaders(r.headers()), otlploggrpc.WithRetry(otlploggrpc.RetryConfig{}))
}
