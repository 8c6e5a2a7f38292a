package settings

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/tollgate-dev/tollgate/config/egress"
	"github.com/tollgate-dev/tollgate/config/encryption"
	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
)

// Receiver is an OTLP receiver. The zero Receiver is disabled.
type Receiver struct {
	Endpoint string `yaml:"endpoint" doc:"URL of the receiver; empty disables the export. HTTP exports append /v1/traces, /v1/metrics or /v1/logs"`

	Protocol Protocol `yaml:"protocol" doc:"http or grpc; default grpc for port 4317, otherwise http"`

	Headers map[string]strictyaml.Secret `yaml:"headers" doc:"headers of export requests, such as authorization"`

	CA strictyaml.Secret `yaml:"ca" doc:"PEM certificates of the receiver's authorities; default the system's authorities"`

	Certificate strictyaml.Secret `yaml:"certificate" doc:"PEM client certificate chain, if the receiver requires one"`
	Key         strictyaml.Secret `yaml:"key" doc:"PEM private key of the client certificate"`
}

// Validate returns all faults of the section, joined. Their paths are relative to the section.
func (r *Receiver) Validate() error {
	var errs fault.Found
	u, err := url.Parse(r.Endpoint)
	errs.If(r.Endpoint != "" && (err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https"), "endpoint",
		"must be an http or https URL")
	errs = append(errs, fault.At("endpoint", egress.CheckPort(u)))
	r.validateProtocol(&errs)
	for name, value := range r.Headers {
		errs.If(!httpguts.ValidHeaderFieldName(name), fault.Key("headers", name), "is not a valid header name")
		errs.If(!httpguts.ValidHeaderFieldValue(value.Reveal()), fault.Key("headers", name),
			"contains characters that are not permitted in headers")
	}
	if _, err := r.TLS(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// TLS returns the TLS configuration for connections to the receiver. It returns nil if the endpoint is an http URL.
func (r *Receiver) TLS() (*tls.Config, error) {
	if strings.HasPrefix(r.Endpoint, "http:") {
		if !r.CA.IsZero() || !r.Certificate.IsZero() || !r.Key.IsZero() {
			return nil, fault.Errorf("endpoint", "must be https if ca, certificate or key is set")
		}
		return nil, nil //nolint:nilnil // not https
	}
	c := encryption.Config()
	if r.CA.Resolved() {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM([]byte(r.CA.Reveal())) {
			return nil, fault.Errorf("ca", "contains no certificate")
		}
	}
	if r.Certificate.IsZero() != r.Key.IsZero() {
		return nil, fault.Errorf("certificate", "must be set together with key")
	}
	if r.Certificate.Resolved() && r.Key.Resolved() {
		pair, err := KeyPair(r.Certificate, r.Key)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{*pair}
	}
	return c, nil
}

// KeyPair parses a certificate chain and the private key of its first certificate. Both secrets must be resolved. The error has the path
// "certificate" or "key", and does not contain the value of a secret.
func KeyPair(certificate, key strictyaml.Secret) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair([]byte(certificate.Reveal()), []byte(key.Reveal()))
	if err == nil {
		return &pair, nil
	}
	switch text := strings.TrimPrefix(err.Error(), "tls: "); {
	case strings.Contains(text, "in certificate input"):
		return nil, fault.Errorf("certificate", "%s contains no PEM certificate", certificate.Source())
	case strings.Contains(text, "in key input"), strings.Contains(text, "parse private key"):
		return nil, fault.Errorf("key", "%s contains no PEM private key", key.Source())
	case strings.Contains(text, "does not match"):
		return nil, fault.Errorf("key", "%s is not the private key of the certificate", key.Source())
	default:
		return nil, fault.Errorf("certificate", "%s cannot be parsed: %s", certificate.Source(), text)
	}
}

// Signal is a kind of telemetry, named as in the paths of the OTLP specification.
type Signal string

// Signals of OTLP.
const (
	Traces  Signal = "traces"
	Metrics Signal = "metrics"
	Logs    Signal = "logs"
)

// Address returns the URL that receives a signal over HTTP: the endpoint with the standard path of the signal, such as /v1/traces,
// appended. If the endpoint already ends with the standard path of a signal, that path is replaced.
func (r *Receiver) Address(s Signal) string {
	u, err := url.Parse(r.Endpoint)
	if err != nil {
		return r.Endpoint
	}
	for _, other := range []Signal{Traces, Metrics, Logs} {
		if base, ok := strings.CutSuffix(u.Path, "/v1/"+string(other)); ok {
			u.Path = base
		}
	}
	return u.JoinPath("v1", string(s)).String()
}

// TracesURL returns the URL that receives spans over HTTP, or "" if the receiver does not use HTTP.
func (r *Receiver) TracesURL() string {
	if r.Endpoint == "" || r.GRPC() {
		return ""
	}
	return r.Address(Traces)
}

// HeaderValues returns the headers of export requests.
func (r *Receiver) HeaderValues() map[string]string {
	h := make(map[string]string, len(r.Headers))
	for name, value := range r.Headers {
		h[name] = value.Reveal()
	}
	return h
}

// Protocol is the OTLP transport of a receiver.
type Protocol string

// Values of Protocol. The zero Protocol means gRPC if the endpoint has the default port of OTLP/gRPC, and HTTP otherwise.
const (
	ProtocolHTTP Protocol = "http"
	ProtocolGRPC Protocol = "grpc"
)

// grpcPort is the default port of OTLP/gRPC.
const grpcPort = "4317"

// GRPC reports whether the receiver uses gRPC.
func (r *Receiver) GRPC() bool {
	u, err := url.Parse(r.Endpoint)
	return r.Protocol == ProtocolGRPC || r.Protocol == "" && err == nil && u.Port() == grpcPort
}

// validateProtocol adds a fault if the protocol is invalid, or if the endpoint cannot be used with the protocol.
func (r *Receiver) validateProtocol(errs *fault.Found) {
	errs.If(r.Protocol != "" && r.Protocol != ProtocolHTTP && r.Protocol != ProtocolGRPC, "protocol",
		"must be http or grpc, got %q", string(r.Protocol))
	u, err := url.Parse(r.Endpoint)
	if err != nil || !r.GRPC() || r.Endpoint == "" {
		return
	}
	errs.If(u.Port() == "", "endpoint", "must contain a port with protocol grpc, such as %s", grpcPort)
	errs.If(u.Path != "" && u.Path != "/" || u.RawQuery != "", "endpoint", "must not have a path or query with protocol grpc")
}
