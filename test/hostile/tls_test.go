package hostile

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/test/world"
)

// selfSigned is a certificate for gw, with its serial number.
func selfSigned(t *testing.T, serial int64) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), DNSNames: []string{"gw"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: start.Add(-time.Hour), NotAfter: start.Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// trusting is how a caller that trusts only c calls.
func trusting(c *tls.Certificate) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(c.Leaf)
	return &tls.Config{RootCAs: roots, ServerName: "gw", Time: func() time.Time { return start }}
}

// handshake opens a connection over TLS to an address.
func handshake(t *testing.T, s *site, cfg *tls.Config) (*tls.Conn, error) {
	t.Helper()
	conn := tls.Client(s.dial(t), cfg)
	t.Cleanup(func() { _ = conn.Close() })
	return conn, conn.HandshakeContext(t.Context())
}

// one sends one request on an open connection and reads its answer.
func one(t *testing.T, conn io.ReadWriter, raw string) answer {
	t.Helper()
	if _, err := io.WriteString(conn, raw); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return answer{res.StatusCode, res.Header, string(body), res.Close}
}

// TestTLS: the same judgement of bytes, below an encryption that cannot be talked
// down.
func TestTLS(t *testing.T) {
	t.Parallel()
	cert := selfSigned(t, 1)
	s := open(t, encrypted(cert, nil))
	conn, err := handshake(t, s, trusting(cert))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // on one connection
		if got := one(t, conn, request("GET", "/v2/pods", k1, "")); got.Status != 200 || got.Last {
			t.Errorf("status %d, last %t, want 200 on a connection that stays", got.Status, got.Last)
		}
	}
	s.recorder.take()
	if _, err := io.WriteString(conn, head+"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"+smuggled); err != nil {
		t.Fatal(err)
	}
	if got := answers(t, conn); len(got) != 1 || got[0].Status != 400 {
		t.Errorf("two lengths: got %+v, want one answer, 400", got)
	}

	plain := s.dial(t)
	defer func() { _ = plain.Close() }()
	if _, err := io.WriteString(plain, request("GET", "/v2/pods", k1, "")); err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(plain); strings.Contains(string(got), "HTTP/") { // however the connection ends
		t.Errorf("without encryption: got %q, want no answer", got)
	}
	for name, cfg := range map[string]func(*tls.Config){
		"TLS 1.1":     func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 },
		"HTTP/2 only": func(c *tls.Config) { c.NextProtos = []string{"h2"} },
		"suites in CBC mode": func(c *tls.Config) {
			c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA}
		},
		"another's name": func(c *tls.Config) { c.ServerName = "other" },
	} {
		c := trusting(cert)
		cfg(c)
		if _, err := handshake(t, s, c); err == nil {
			t.Errorf("%s: the handshake succeeds", name)
		}
	}
	old := trusting(cert)
	old.MaxVersion = tls.VersionTLS12
	if _, err := handshake(t, s, old); err != nil {
		t.Errorf("TLS 1.2: %v", err)
	}
	s.recorder.untouched(t)
}

// TestCertificatesAreRenewed: another certificate is served at once, open connections
// stay, and a change that requires a restart is reported.
func TestCertificatesAreRenewed(t *testing.T) {
	t.Parallel()
	first, second := selfSigned(t, 1), selfSigned(t, 2)
	s := open(t, encrypted(first, first))
	old, err := handshake(t, s, trusting(first))
	if err != nil {
		t.Fatal(err)
	}
	swap := func(c *tls.Certificate) {
		t.Helper()
		cfg := s.config
		cfg.TLS.Pair, cfg.Admin.TLS.Pair = c, c
		cfg.Envoy.XDS.Groups = []settings.NodeGroup{{ID: "edge", Certificates: []settings.TLS{{Pair: first}}}}
		if err := s.gateway.Swap(cfg); err != nil {
			t.Fatal(err)
		}
	}
	swap(second)
	if _, err := handshake(t, s, trusting(first)); err == nil {
		t.Error("the old certificate is still served")
	}
	if _, err := handshake(t, s, trusting(second)); err != nil {
		t.Errorf("the new certificate: %v", err)
	}
	if got := one(t, old, request("GET", "/v2/pods", k1, "")); got.Status != 200 {
		t.Errorf("on the connection that was open: status %d, want 200", got.Status)
	}
	operator := &http.Client{Transport: &http.Transport{TLSClientConfig: trusting(second)}}
	defer operator.CloseIdleConnections()
	// The words of net/http about a stranger are in the log, but not the stranger's bytes.
	stranger := world.Dial(t, s.admin)
	if _, err := io.WriteString(stranger, "GET /"+canary+" HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadAll(stranger) // it is noted when the connection has ended
	noted := `"msg":"TLS handshake failed","network.peer.address":"` + stranger.LocalAddr().String()
	if log := s.logs.Await(noted); !strings.Contains(log, noted) || strings.Contains(log, canary) {
		t.Errorf("the log has no handshake that failed, or shows what was sent:\n%s", log)
	}
	res, err := operator.Get("https://" + s.admin + "/livez")
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != 200 {
		t.Errorf("admin listener: status %d, want 200", res.StatusCode)
	}

	swap(nil)
	if _, err := handshake(t, s, trusting(second)); err != nil {
		t.Errorf("a certificate taken away: %v, want the last one served until a restart", err)
	}
	for _, field := range []string{"tls", "admin.tls"} {
		if want := `"configuration change requires a restart","field":"` + field + `"`; !strings.Contains(s.logs.String(), want) {
			t.Errorf("the log does not say %s", want)
		}
	}
	w := httptest.NewRecorder()
	s.metrics.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, listener := range []string{"data", "admin", "group edge"} {
		if want := `tollgate_certificate_left_seconds{listener="` + listener + `"`; !strings.Contains(w.Body.String(), want) {
			t.Errorf("no metric %s", want)
		}
	}
}
