package gateway

import (
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
func (g *Gateway) encrypted(l net.Listener, pick func(*Config) *tls.Certificate) net.Listener {
	if pick(g.current.Load().config) == nil {
		return l
	}
	return tls.NewListener(l, &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return pick(g.current.Load().config), nil
		},
	})
}

func ofData(c *Config) *tls.Certificate  { return c.TLS.Pair }
func ofAdmin(c *Config) *tls.Certificate { return c.Admin.TLS.Pair }

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
		for listener, pick := range map[string]func(*Config) *tls.Certificate{"data": ofData, "admin": ofAdmin} {
			if c := pick(now.config); c != nil && c.Leaf != nil {
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
