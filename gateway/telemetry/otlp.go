package telemetry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"golang.org/x/net/http/httpguts"

	"github.com/tollgate-dev/tollgate/config/encryption"
	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
)

// Receiver is an OTLP receiver. The zero Receiver is none.
type Receiver struct {
	Endpoint string                       `yaml:"endpoint" doc:"URL of the OTLP receiver, to which HTTP adds /v1/traces, /v1/metrics and /v1/logs; empty exports nothing"`
	Protocol Protocol                     `yaml:"protocol" doc:"http or grpc; without it grpc if the endpoint has port 4317, else http"`
	Headers  map[string]strictyaml.Secret `yaml:"headers" doc:"headers that exports carry, such as authorization"`
	CA       strictyaml.Secret            `yaml:"ca" doc:"authorities of the receiver's certificate in PEM, instead of those of the system"`

	Certificate strictyaml.Secret `yaml:"certificate" doc:"client certificate chain in PEM, for receivers that require one"`
	Key         strictyaml.Secret `yaml:"key" doc:"its private key in PEM"`
}

// Validate reports every fault, each with its path below the section.
func (r *Receiver) Validate() error {
	var errs fault.Found
	u, err := url.Parse(r.Endpoint)
	errs.If(r.Endpoint != "" && (err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https"), "endpoint", "must be an http or https URL")
	r.validateProtocol(&errs)
	for name, value := range r.Headers {
		errs.If(!httpguts.ValidHeaderFieldName(name), fault.Key("headers", name), "is not the name of a header")
		errs.If(!httpguts.ValidHeaderFieldValue(value.Reveal()), fault.Key("headers", name), "has characters that no header may have")
	}
	if _, err := r.tls(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// tls returns how the receiver is dialled, nil for one without TLS.
func (r *Receiver) tls() (*tls.Config, error) {
	if strings.HasPrefix(r.Endpoint, "http:") {
		if !r.CA.IsZero() || !r.Certificate.IsZero() || !r.Key.IsZero() {
			return nil, fault.Errorf("endpoint", "must be https with ca, certificate or key")
		}
		return nil, nil //nolint:nilnil // none is needed
	}
	c := encryption.Config()
	if r.CA.Resolved() {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM([]byte(r.CA.Reveal())) {
			return nil, fault.Errorf("ca", "holds no certificate")
		}
	}
	if r.Certificate.IsZero() != r.Key.IsZero() {
		return nil, fault.Errorf("certificate", "needs key beside it, and key needs it")
	}
	if r.Certificate.Resolved() && r.Key.Resolved() {
		pair, err := tls.X509KeyPair([]byte(r.Certificate.Reveal()), []byte(r.Key.Reveal()))
		if err != nil {
			return nil, fault.Errorf("certificate", "%s", strings.TrimPrefix(err.Error(), "tls: ")) // shows no content
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// signal is a kind of export, as the path of the OTLP specification names it.
type signal string

const (
	traces  signal = "traces"
	metrics signal = "metrics"
	logs    signal = "logs"
)

// address is where a receiver takes a signal: the path of the specification below the
// endpoint, unless that names one of those paths itself.
func (r *Receiver) address(s signal) string {
	u, err := url.Parse(r.Endpoint)
	if err != nil {
		return r.Endpoint
	}
	for _, other := range []signal{traces, metrics, logs} {
		if base, ok := strings.CutSuffix(u.Path, "/v1/"+string(other)); ok {
			u.Path = base
		}
	}
	return u.JoinPath("v1", string(s)).String()
}

// Traces returns where the receiver takes spans over HTTP, "" if it does not.
func (r *Receiver) Traces() string {
	if r.Endpoint == "" || r.grpc() {
		return ""
	}
	return r.address(traces)
}

func (r *Receiver) headers() map[string]string {
	h := make(map[string]string, len(r.Headers))
	for name, value := range r.Headers {
		h[name] = value.Reveal()
	}
	return h
}

// exportTimeout bounds one export.
const exportTimeout = 5 * time.Second

func (r *Receiver) spans(ctx context.Context) (sdktrace.SpanExporter, error) {
	if r.grpc() {
		return r.grpcSpans(ctx)
	}
	c, err := r.tls()
	if err != nil {
		return nil, err
	}
	return otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(r.address(traces)), otlptracehttp.WithTimeout(exportTimeout),
		otlptracehttp.WithHeaders(r.headers()), otlptracehttp.WithTLSClientConfig(c))
}

func (r *Receiver) metrics(ctx context.Context) (sdkmetric.Exporter, error) {
	if r.grpc() {
		return r.grpcMetrics(ctx)
	}
	c, err := r.tls()
	if err != nil {
		return nil, err
	}
	return otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(r.address(metrics)), otlpmetrichttp.WithTimeout(exportTimeout),
		otlpmetrichttp.WithHeaders(r.headers()), otlpmetrichttp.WithTLSClientConfig(c))
}

// reader reads metrics for the receiver now and then.
func (r *Receiver) reader(ctx context.Context, every time.Duration) (sdkmetric.Reader, error) {
	e, err := r.metrics(ctx)
	if err != nil {
		return nil, err
	}
	return sdkmetric.NewPeriodicReader(e, sdkmetric.WithInterval(every), sdkmetric.WithTimeout(exportTimeout)), nil
}

// Logs returns an exporter of log records. It tries each batch once, so that its caller
// decides what becomes of one that fails.
func (r *Receiver) Logs(ctx context.Context) (sdklog.Exporter, error) {
	e, err := r.logs(ctx)
	if err != nil {
		return nil, fmt.Errorf("otlp: %w", err)
	}
	return e, nil
}

func (r *Receiver) logs(ctx context.Context) (sdklog.Exporter, error) {
	if r.grpc() {
		return r.grpcLogs(ctx)
	}
	c, err := r.tls()
	if err != nil {
		return nil, err
	}
	return otlploghttp.New(ctx, otlploghttp.WithEndpointURL(r.address(logs)), otlploghttp.WithTimeout(exportTimeout),
		otlploghttp.WithHeaders(r.headers()), otlploghttp.WithTLSClientConfig(c), otlploghttp.WithRetry(otlploghttp.RetryConfig{}))
}
