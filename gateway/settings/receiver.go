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
	errs = append(errs, fault.At("endpoint", egress.CheckPort(u)))
	r.validateProtocol(&errs)
	for name, value := range r.Headers {
		errs.If(!httpguts.ValidHeaderFieldName(name), fault.Key("headers", name), "is not the name of a header")
		errs.If(!httpguts.ValidHeaderFieldValue(value.Reveal()), fault.Key("headers", name), "has characters that no header may have")
	}
	if _, err := r.TLS(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// TLS returns how the receiver is dialled, nil for one without TLS.
func (r *Receiver) TLS() (*tls.Config, error) {
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
		pair, err := KeyPair(r.Certificate, r.Key)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{*pair}
	}
	return c, nil
}

// KeyPair parses a certificate chain and its private key, both resolved. Its errors have the path certificate or key, and show no content.
func KeyPair(certificate, key strictyaml.Secret) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair([]byte(certificate.Reveal()), []byte(key.Reveal()))
	if err == nil {
		return &pair, nil
	}
	switch text := strings.TrimPrefix(err.Error(), "tls: "); {
	case strings.Contains(text, "in certificate input"):
		return nil, fault.Errorf("certificate", "%s holds no certificate in PEM", certificate.Source())
	case strings.Contains(text, "in key input"), strings.Contains(text, "parse private key"):
		return nil, fault.Errorf("key", "%s holds no private key in PEM", key.Source())
	case strings.Contains(text, "does not match"):
		return nil, fault.Errorf("key", "%s is not the private key of the certificate", key.Source())
	default:
		return nil, fault.Errorf("certificate", "%s cannot be read: %s", certificate.Source(), text)
	}
}

// Signal is a kind of export, as the path of the OTLP specification names it.
type Signal string

// The signals.
const (
	Traces  Signal = "traces"
	Metrics Signal = "metrics"
	Logs    Signal = "logs"
)

// Address is where a receiver takes a signal: the path of the specification below the
// endpoint, unless that names one of those paths itself.
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

// TracesURL returns where the receiver takes spans over HTTP, "" if it does not.
func (r *Receiver) TracesURL() string {
	if r.Endpoint == "" || r.GRPC() {
		return ""
	}
	return r.Address(Traces)
}

// HeaderValues returns the headers of exports.
func (r *Receiver) HeaderValues() map[string]string {
	h := make(map[string]string, len(r.Headers))
	for name, value := range r.Headers {
		h[name] = value.Reveal()
	}
	return h
}

// Protocol is how a receiver is spoken to.
type Protocol string

// Protocols. The zero Protocol is that of the endpoint's port.
const (
	ProtocolHTTP Protocol = "http"
	ProtocolGRPC Protocol = "grpc"
)

// grpcPort is the port that receivers have for OTLP/gRPC by default.
const grpcPort = "4317"

// GRPC reports whether the receiver is spoken to by gRPC.
func (r *Receiver) GRPC() bool {
	u, err := url.Parse(r.Endpoint)
	return r.Protocol == ProtocolGRPC || r.Protocol == "" && err == nil && u.Port() == grpcPort
}

// validateProtocol reports the faults of the protocol, and of an endpoint that it does not
// fit.
func (r *Receiver) validateProtocol(errs *fault.Found) {
	errs.If(r.Protocol != "" && r.Protocol != ProtocolHTTP && r.Protocol != ProtocolGRPC, "protocol", "must be http or grpc, got %q", string(r.Protocol))
	u, err := url.Parse(r.Endpoint)
	if err != nil || !r.GRPC() || r.Endpoint == "" {
		return
	}
	errs.If(u.Port() == "", "endpoint", "must name a port with protocol grpc, such as %s", grpcPort)
	errs.If(u.Path != "" && u.Path != "/" || u.RawQuery != "", "endpoint", "must have no path with protocol grpc")
}
