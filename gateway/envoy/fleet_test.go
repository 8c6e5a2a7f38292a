package envoy_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/view"
)

// An Envoy with an expired certificate gets no connection, and the log says why.
func TestRefusedHandshakesAreLogged(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(-time.Minute)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	expired, pool := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, x509.NewCertPool()
	pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	cfg, now := settings.Default(), view.New(time.Now)
	cfg.Envoy.TLS = settings.MutualTLS{Pair: &expired, Pool: pool}
	now.Set(&view.View{Config: &cfg})
	var log bytes.Buffer
	l := bufconn.Listen(1 << 20)
	g := grpc.NewServer(envoy.MutualTLS(now, slog.New(slog.NewTextHandler(&log, nil)))...)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	conn, err := l.Dial()
	if err != nil {
		t.Fatal(err)
	}
	client := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{expired}})
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

// A group that is configured no longer is served no longer, and its neighbour is
// left alone.
func TestGroupsComeAndGo(t *testing.T) {
	edge, mesh := on("127.0.0.1:1"), on("127.0.0.1:2")
	mesh.ID = "mesh"
	s, _ := serve(t, edge, mesh)
	if err := s.SetGateways(nil); err != nil {
		t.Fatal(err)
	}
	if err := s.SetGroups([]envoy.Group{mesh}, ""); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Snapshot("edge"); err == nil {
		t.Error("the group that is gone is served")
	}
	if _, _, err := s.Snapshot("mesh"); err != nil {
		t.Error(err)
	}
}

// An Envoy whose group is removed, and then put back with changes, gets the changes on the same stream.
func TestAGroupReturnsToItsEnvoys(t *testing.T) {
	edge := on("127.0.0.1:1")
	s, connect := serve(t, edge)
	if err := s.SetGateways(nil); err != nil {
		t.Fatal(err)
	}
	e := connect("edge")
	e.subscribe(resource.ListenerType)
	if err := s.SetGroups(nil, ""); err != nil {
		t.Fatal(err)
	}
	if resources, _, err := s.Snapshot("edge"); len(resources) > 0 || err != nil {
		t.Errorf("served to the Envoy of a removed group: %v (%v)", resources, err)
	}
	changed := on("127.0.0.1:2")
	if err := s.SetGroups([]envoy.Group{changed}, ""); err != nil {
		t.Fatal(err)
	}
	res := e.recv()
	e.answer(res, "")
	if want := snapshot(t, changed).GetVersion(resource.ListenerType); res.GetSystemVersionInfo() != want {
		t.Errorf("the Envoy got version %s, want %s", res.GetSystemVersionInfo(), want)
	}
}
