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

// encrypted returns a listener for HTTP/1.1 over TLS 1.2 or later. The function pick selects the certificate in a configuration; if it
// selects nil, encrypted returns l. Each handshake uses the current certificate. If signers returns a pool, the handshake requests a
// certificate of the caller. The certificate is verified with each request and not in the handshake, because it may be revoked while the
// connection is open, and because the caller should get an HTTP error.
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

// ofNone returns no certificate authorities, so that no certificates of callers are requested.
func ofNone() *x509.CertPool { return nil }

// Encrypted reports whether a request was received over TLS.
func Encrypted(r *http.Request) bool {
	_, encrypted := wire.Conn(r.Context()).(*tls.Conn)
	return encrypted || r.TLS != nil
}

// Certificates returns the certificate chain that the client presented, with the client's certificate first. It returns nil if the client
// did not present a certificate or did not use TLS.
func Certificates(r *http.Request) []*x509.Certificate {
	if c, encrypted := wire.Conn(r.Context()).(*tls.Conn); encrypted {
		return c.ConnectionState().PeerCertificates
	}
	return nil
}

func ofData(c *settings.Config) *tls.Certificate  { return c.TLS.Pair }
func ofAdmin(c *settings.Config) *tls.Certificate { return c.Admin.TLS.Pair }

// certificateEnds returns the time when the first certificate of each listener expires. The listeners are data, admin, envoy, and
// "group ID" for the Envoys of a group.
func certificateEnds(c *settings.Config) map[string]time.Time {
	pairs := map[string][]*tls.Certificate{"data": {c.TLS.Pair}, "admin": {c.Admin.TLS.Pair}, "envoy": {c.Envoy.TLS.Pair}}
	for _, g := range c.Envoy.XDS.Groups {
		for _, t := range append([]settings.TLS{g.TLS}, g.Certificates...) {
			pairs["group "+g.ID] = append(pairs["group "+g.ID], t.Pair)
		}
	}
	ends := make(map[string]time.Time)
	for listener, of := range pairs {
		for _, p := range of {
			if end, known := ends[listener]; p != nil && p.Leaf != nil && (!known || p.Leaf.NotAfter.Before(end)) {
				ends[listener] = p.Leaf.NotAfter
			}
		}
	}
	return ends
}

// Measure registers two metrics: when the certificates of listeners expire, including listeners of Envoys, and when certificate revocation
// lists expire. The function revocations returns the expiry time of each list, by certificate authority.
func (ls *Listeners) Measure(m metric.Meter, revocations func() map[string]time.Time) {
	left := telemetry.Must(m.Float64ObservableGauge("tollgate.certificate.left", metric.WithUnit("s"),
		metric.WithDescription("Time until the first certificate of a listener expires. Negative if the certificate has expired.")))
	lists := telemetry.Must(m.Float64ObservableGauge("tollgate.revocations.left", metric.WithUnit("s"),
		metric.WithDescription("Time until a certificate revocation list expires. Callers with certificates "+
			"of its authority are then refused. Negative if the list has expired.")))
	telemetry.Must(m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		cfg := ls.Config()
		if cfg == nil {
			return nil
		}
		for listener, end := range certificateEnds(cfg) {
			o.ObserveFloat64(left, end.Sub(ls.Recorder.Now()).Seconds(), metric.WithAttributes(attribute.String("listener", listener)))
		}
		for authority, end := range revocations() {
			o.ObserveFloat64(lists, end.Sub(ls.Recorder.Now()).Seconds(), metric.WithAttributes(attribute.String("authority", authority)))
		}
		return nil
	}, left, lists))
}
