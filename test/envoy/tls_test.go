package envoy

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quic-go/quic-go/http3"

	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/test/world"
)

// token is what Envoys show.
const token = "token-of-the-envoys"

// encrypted is the configuration of a fleet with TLS everywhere, with the certificate in
// dir, and callers at an address.
func encrypted(dir, callers string) string {
	pair := fmt.Sprintf("certificate: {file: %q}, key: {file: %q}", filepath.Join(dir, "tls.crt"), filepath.Join(dir, "private", "tls.key"))
	return strings.NewReplacer(
		"\nenvoy:\n", fmt.Sprintf("\ntls: {%s}\nenvoy:\n  tls: {%[1]s, ca: {file: %q}}\n", pair, filepath.Join(dir, "ca.crt")),
		"    groups:\n", fmt.Sprintf("    token: {env: TOKEN}\n    secrets: %q\n    groups:\n", dir),
		`listen: "127.0.0.1:0"}`, fmt.Sprintf("listen: %q, http3: true, tls: {%s}}", callers, pair),
	).Replace(configuration + groups)
}

// secure is a bootstrap for such a fleet.
func secure(t *testing.T, group, dir string, doors ...netip.AddrPort) *bootstrap {
	t.Helper()
	files, err := envoy.Files{Certificate: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "private", "tls.key"), CA: filepath.Join(dir, "ca.crt")}.Secrets()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return decoded(t, envoy.Bootstrap{
		Node: "envoy-" + group, Group: group, Admin: netip.MustParseAddrPort("127.0.0.1:0"), Doors: doors, Connections: 1000,
		Peer: envoy.Peer{Name: callersName, Secrets: dir}, Token: token, Heap: 1 << 30,
	})
}

// Envoy itself finds nothing wrong with a bootstrap, and nothing that is deprecated.
func TestBootstrapsAreValid(t *testing.T) {
	dir := t.TempDir()
	newAuthority(t).issue(t, dir)
	door := netip.MustParseAddrPort("127.0.0.1:1")
	for name, b := range map[string]*bootstrap{"plain": bootstrapOf(t, edge, door), "with everything": secure(t, edge, dir, door)} {
		text, err := json.Marshal(b.doc)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "envoy.json")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), program(t), "-c", file, "--mode", "validate", "--log-level", "warn").CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("OK")) || bytes.Contains(bytes.ToLower(out), []byte("deprecated")) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// With TLS between callers, Envoys and gateways, and a token: callers are served by
// HTTP/1.1 and HTTP/3, an Envoy without the token gets nothing, and another certificate
// is used by all of them without a restart.
func TestTLSEverywhere(t *testing.T) {
	for _, group := range []string{edge, mesh} {
		t.Run(group, func(t *testing.T) {
			ca, dir := newAuthority(t), t.TempDir()
			ca.issue(t, dir)
			callers := fmt.Sprint("127.0.0.1:", port(t))
			text := encrypted(dir, callers)
			f := newFleet(t, text)
			m := f.run(t, nil)
			w := &way{platform: f.platform, gateway: m.Gateway, logs: m.logs, process: start(t, secure(t, group, dir, m.door))}
			by := map[string]http.RoundTripper{
				"HTTP/1.1": &http.Transport{TLSClientConfig: ca.client(), DisableKeepAlives: true},
				"HTTP/3.0": quic(t, ca),
			}
			world.Until(t, "a gateway is healthy", func() bool {
				res := call(t, by["HTTP/1.1"], "GET", "https://"+callers+"/v2/pods", "")
				return res != nil && res.StatusCode == 200
			})
			for name, tr := range by {
				for _, tc := range []struct {
					method, body string
					status       int
				}{{"GET", "", 200}, {"POST", pod4090, 201}, {"POST", podH100, 403}} {
					res := call(t, tr, tc.method, "https://"+callers+"/v2/pods", tc.body)
					if res == nil || res.StatusCode != tc.status || res.Proto != name {
						t.Fatalf("%s by %s: %+v, want %d", tc.method, name, res, tc.status)
					}
					_, number, _ := strings.Cut(callers, ":")
					if got, want := res.Header.Get("Alt-Svc"), `h3=":`+number+`"; ma=86400`; group == edge && got != want {
						t.Errorf("Alt-Svc by %s = %q, want %q", name, got, want)
					}
				}
			}
			checkCalls(t, f.platform.Calls())

			b := secure(t, group, dir, m.door)
			grpc, _ := list(object(b.doc, "dynamic_resources", "ads_config")["grpc_services"])[0].(map[string]any)
			delete(grpc, "initial_metadata")
			stranger := launch(t, b)
			world.Until(t, "the gateway refuses an Envoy without the token", func() bool {
				return strings.Contains(m.logs.String(), "refused an Envoy that did not send the token in envoy.xds.token")
			})
			if d := stranger.shown(t); len(d.listener) > 0 || len(d.clusters) > 1 {
				t.Errorf("an Envoy without the token has %v and the clusters %v", d.listener, d.clusters)
			}

			serial := ca.issue(t, dir)
			if err := m.Swap(f.configuration(t, text)); err != nil {
				t.Fatal(err)
			}
			n, _ := new(big.Int).SetString(serial, 10)
			world.Until(t, "callers and gateways are shown the new certificate", func() bool {
				conn, err := tls.Dial("tcp", callers, ca.client())
				if err != nil {
					return false
				}
				defer func() { _ = conn.Close() }()
				// By TCP, by QUIC, and to the gateways.
				return conn.ConnectionState().PeerCertificates[0].SerialNumber.Cmp(n) == 0 && strings.Count(w.ask(t, "/certs"), fmt.Sprintf("%x", n)) >= 3
			})
			for name, tr := range by {
				if res := call(t, tr, "GET", "https://"+callers+"/v2/pods", ""); res == nil || res.StatusCode != 200 {
					t.Errorf("by %s with another certificate: %+v, want 200", name, res)
				}
			}
		})
	}
}

// client is the TLS of callers.
func (a *authority) client() *tls.Config {
	return &tls.Config{RootCAs: a.pool, ServerName: callersName, MinVersion: tls.VersionTLS12}
}

func quic(t *testing.T, ca *authority) http.RoundTripper {
	t.Helper()
	tr := &http3.Transport{TLSClientConfig: ca.client()}
	t.Cleanup(func() { _ = tr.Close() })
	return tr
}

// call makes a call and returns the response without its body, nil if there is none.
func call(t *testing.T, tr http.RoundTripper, method, url, body string) *answered {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body == "" {
		req.Body, req.ContentLength = http.NoBody, 0
	} else {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", "Bearer key_research")
	res, err := tr.RoundTrip(req)
	if err != nil {
		return nil
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, res.Body)
	return &answered{res.StatusCode, res.Proto, res.Header}
}

// answered is a response whose body was read.
type answered struct {
	StatusCode int
	Proto      string
	Header     http.Header
}
