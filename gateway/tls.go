package gateway

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// encrypted makes a listener speak TLS if the configuration has a certificate for
// it, which pick takes out: HTTP/1.1 over TLS 1.2 or later. Each handshake takes
// the certificate then in force.
func (g *Gateway) encrypted(l net.Listener, pick func(*Certificates) *tls.Certificate) net.Listener {
	if pick(&g.current.Load().config.Certificates) == nil {
		return l
	}
	return tls.NewListener(l, &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return pick(&g.current.Load().config.Certificates), nil
		},
	})
}

// or is c with those of old where it has none: a listener cannot stop to speak TLS.
func (c Certificates) or(old Certificates) Certificates {
	return Certificates{Data: cmp.Or(c.Data, old.Data), Admin: cmp.Or(c.Admin, old.Admin)}
}

func ofData(c *Certificates) *tls.Certificate  { return c.Data }
func ofAdmin(c *Certificates) *tls.Certificate { return c.Admin }

// measureCertificates makes a metric of how long the certificates in force last.
func (g *Gateway) measureCertificates() error {
	m := g.deps.Providers.Meter().Meter("github.com/tollgate-dev/tollgate/gateway")
	left, err := m.Float64ObservableGauge("tollgate.certificate.left", metric.WithUnit("s"),
		metric.WithDescription("Time until the certificate of a listener ends; negative when it has."))
	if err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	_, err = m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		now := g.current.Load()
		if now == nil {
			return nil
		}
		for listener, pick := range map[string]func(*Certificates) *tls.Certificate{"data": ofData, "admin": ofAdmin} {
			if c := pick(&now.config.Certificates); c != nil && c.Leaf != nil {
				o.ObserveFloat64(left, c.Leaf.NotAfter.Sub(g.deps.Now()).Seconds(), metric.WithAttributes(attribute.String("listener", listener)))
			}
		}
		return nil
	}, left)
	if err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	return nil
}
