package listen

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tollgate-dev/tollgate/config/encryption"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/gateway/wire"
)

// encrypted returns a listener that speaks HTTP/1.1 over TLS 1.2 or later, if the configuration has a certificate for it; pick selects the
// certificate. Each handshake uses the current certificate, and requests a certificate of the caller if signers has any certificate
// authorities. Caller certificates are verified with each request instead of in the handshake, because a certificate may be revoked while
// the connection is open, and the caller should receive an HTTP error.
func (ls *Listeners) encrypted(l net.Listener, pick func(*settings.Config) *tls.Certificate, signers func() *x509.CertPool) net.Listener {
	if pick(ls.Config()) == nil {
		return l
	}
	silent := encryption.Config()
	silent.NextProtos, silent.Time = []string{"http/1.1"}, ls.Recorder.Now
	silent.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return pick(ls.Config()), nil
	}
	asking := silent.Clone()
	asking.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		pool := signers()
		if pool == nil {
			return nil, nil
		}
		c := silent.Clone()
		c.ClientAuth, c.ClientCAs = tls.RequestClientCert, pool
		return c, nil
	}
	return tls.NewListener(l, asking)
}

// ofNone requests no certificates of callers.
func ofNone() *x509.CertPool { return nil }

// Encrypted reports whether a request was received over TLS.
func Encrypted(r *http.Request) bool {
	_, encrypted := wire.Conn(r.Context()).(*tls.Conn)
	return encrypted || r.TLS != nil
}

// Certificates returns the certificate chain that the client presented, its own certificate first. It returns nil for a request without a
// certificate or without TLS.
func Certificates(r *http.Request) []*x509.Certificate {
	if c, encrypted := wire.Conn(r.Context()).(*tls.Conn); encrypted {
		return c.ConnectionState().PeerCertificates
	}
	return nil
}

func ofData(c *settings.Config) *tls.Certificate  { return c.TLS.Pair }
func ofAdmin(c *settings.Config) *tls.Certificate { return c.Admin.TLS.Pair }

// Measure registers metrics for the expiry of the current certificates, and of certificate revocation lists. revocations returns the expiry
// of the lists by certificate authority.
func (ls *Listeners) Measure(m metric.Meter, revocations func() map[string]time.Time) {
	left := telemetry.Must(m.Float64ObservableGauge("tollgate.certificate.left", metric.WithUnit("s"),
		metric.WithDescription("Time until the certificate of a listener expires. Negative if the certificate has expired.")))
	lists := telemetry.Must(m.Float64ObservableGauge("tollgate.revocations.left", metric.WithUnit("s"),
		metric.WithDescription("Time until a revocation list of an authority expires "+
			"and the callers of the authority are refused. Negative if the list has expired.")))
	telemetry.Must(m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		cfg := ls.Config()
		if cfg == nil {
			return nil
		}
		for listener, pick := range map[string]func(*settings.Config) *tls.Certificate{"data": ofData, "admin": ofAdmin} {
			if c := pick(cfg); c != nil && c.Leaf != nil {
				o.ObserveFloat64(left, c.Leaf.NotAfter.Sub(ls.Recorder.Now()).Seconds(), metric.WithAttributes(attribute.String("listener", listener)))
			}
		}
		for authority, end := range revocations() {
			o.ObserveFloat64(lists, end.Sub(ls.Recorder.Now()).Seconds(), metric.WithAttributes(attribute.String("authority", authority)))
		}
		return nil
	}, left, lists))
}
