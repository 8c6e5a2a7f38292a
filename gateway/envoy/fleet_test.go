package envoy_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/test/world"
)

// An Envoy with an expired certificate gets no connection, and the log says why.
func TestRefusedHandshakesAreLogged(t *testing.T) {
	ca, now := world.NewAuthority(t, "envoys", time.Now()), view.New(time.Now)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(ca.PEM()))
	cfg := settings.Default()
	cfg.Envoy.TLS = settings.MutualTLS{Pair: ca.Client(t, ""), Pool: pool}
	now.Set(&view.View{Config: &cfg})
	var log bytes.Buffer
	l := bufconn.Listen(1 << 20)
	g := grpc.NewServer(envoy.MutualTLS(now, slog.New(slog.NewTextHandler(&log, nil)))...)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	expired := ca.Client(t, "", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	conn, err := l.Dial()
	if err != nil {
		t.Fatal(err)
	}
	client := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{*expired}}) //nolint:gosec // a test
	if err := client.HandshakeContext(t.Context()); err == nil {
		_, err = client.Read(make([]byte, 1)) // with TLS 1.3, the server's verdict comes after the handshake
		if err == nil {
			t.Error("an expired certificate is accepted")
		}
	}
	g.Stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), `msg="TLS handshake failed"`) || !strings.Contains(log.String(), "certificate has expired") {
		t.Errorf("the log does not contain the reason:\n%s", log.String())
	}
}
