package deploy_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// certificate writes a certificate of its own and its key, in PEM.
func certificate(t *testing.T) (path string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"gateway.test"}}
	cert, err := x509.CreateCertificate(rand.Reader, &of, &of, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "tls.pem")
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})...)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// scrape runs a gateway that does everything that has metrics, and returns the labels of
// each of them by name.
func scrape(t *testing.T) map[string][]string {
	t.Helper()
	data, err := redistest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	admin, err := redistest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	at := func(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
	pair := certificate(t)
	ofListeners := fmt.Sprintf(`tls: {certificate: {file: %[1]s}, key: {file: %[1]s}}`, pair)
	envoys := fmt.Sprintf(`envoy:
  listen: 127.0.0.1:0
  tls: {certificate: {file: %[1]s}, key: {file: %[1]s}, ca: {env: MESH}}
  xds: {groups: [{id: edge, topology: ext_proc, listen: "127.0.0.1:10000"}]}
`, pair)
	mesh := world.NewAuthority(t, "mesh", time.Now())
	path := configure(t, at(data), at(admin)+", "+ofListeners, platform.RunT(t).URL, fmt.Sprintf(`    limits: {minute: 1000}
    budget: {pods: 100}
    policies: [{policy: gpu_allow_list, params: {gpus: ["NVIDIA L4"]}}]
%s
certificates: {authorities: [{id: mesh, ca: {env: MESH}, crl: {env: REVOKED}, orgs: [acme], role: viewer}]}
decisions: {file: {path: %s}}
audit: {file: {path: %s}, otlp: {endpoint: "http://127.0.0.1:1"}}
%s`, ofListeners, filepath.Join(t.TempDir(), "decisions.log"), filepath.Join(t.TempDir(), "audit.log"), envoys+forTests))
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), binary.Path(t), "serve", "-c", path)
	cmd.Env = append(os.Environ(), "ACME_KEY="+platform.DefaultKey, "MESH="+mesh.PEM(), "REVOKED="+mesh.Revoked(t, time.Now().Add(time.Hour)), "STATE_DIRECTORY="+t.TempDir())
	start(t, cmd).wait(t, `"msg":"serving"`)
	for _, call := range []struct {
		method, path, key, body string
		want                    int
	}{
		{http.MethodGet, "/v2/pods", callerKey, "", http.StatusOK},
		{http.MethodGet, "/v2/pods", "a_key_of_no_one", "", http.StatusUnauthorized},
		{http.MethodPost, "/v2/pods", callerKey, `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA H100 80GB HBM3"}}`, http.StatusForbidden},
	} {
		if status, text := ask(t, call.method, "https://"+at(data)+call.path, call.key, call.body); status != call.want {
			t.Fatalf("%s %s: status %d, want %d: %s", call.method, call.path, status, call.want, text)
		}
	}
	var text string
	for _, of := range []struct{ method, path string }{{http.MethodPost, "/admin/spend/reconcile?org=acme"}, {http.MethodGet, "/metrics"}} {
		var status int
		if status, text = ask(t, of.method, "https://"+at(admin)+of.path, "", ""); status != http.StatusOK {
			t.Fatalf("%s %s: status %d, want 200: %s", of.method, of.path, status, text)
		}
	}
	return labels(text)
}

// ask asks a listener of a gateway.
func ask(t *testing.T, method, url, key, body string) (status int, text string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // it was made for this test
	}}
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// labels reads the text format of Prometheus. Series of one name may differ in
// their labels; all count.
func labels(text string) map[string][]string {
	series := regexp.MustCompile(`(?m)^([a-z_][a-zA-Z0-9_]*)(?:\{(.*)\})? \S+$`)
	label := regexp.MustCompile(`([a-z_]+)="(?:[^"\\]|\\.)*"`)
	found := map[string]map[string]bool{}
	for _, m := range series.FindAllStringSubmatch(text, -1) {
		if found[m[1]] == nil {
			found[m[1]] = map[string]bool{}
		}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			found[m[1]][l[1]] = true
		}
	}
	names := make(map[string][]string, len(found))
	for name, set := range found {
		names[name] = slices.Sorted(maps.Keys(set))
	}
	return names
}
