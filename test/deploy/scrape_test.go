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
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/ratelimit/redistest"
	"github.com/tollgate-dev/tollgate/test/platform"
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

// scrape runs a gateway that does what it has metrics for, and returns the labels of
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
	// The certificate is the admin listener's, so that the calls need none.
	adminTLS := fmt.Sprintf(`%s, tls: {certificate: {file: %[2]s}, key: {file: %[2]s}}`, at(admin), certificate(t))
	path := configure(t, at(data), adminTLS, platform.RunT(t).URL, fmt.Sprintf(`    limits: {minute: 1000}
    budget: {pods: 100}
    policies: [{policy: gpu_allow_list, params: {gpus: ["NVIDIA L4"]}}]
decisions: {file: {path: %s}}
audit: {file: {path: %s}, otlp: {endpoint: "http://127.0.0.1:1"}}
%s`, filepath.Join(t.TempDir(), "decisions.log"), filepath.Join(t.TempDir(), "audit.log"), settings))
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), binary(t), "serve", "-c", path)
	cmd.Env = append(os.Environ(), "ACME_KEY="+platform.DefaultKey)
	start(t, cmd).wait(t, `"msg":"serving"`)
	for _, call := range []struct {
		method, path, key, body string
		want                    int
	}{
		{http.MethodGet, "/v2/pods", callerKey, "", http.StatusOK},
		{http.MethodGet, "/v2/pods", "a_key_of_no_one", "", http.StatusUnauthorized},
		{http.MethodPost, "/v2/pods", callerKey, `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA H100 80GB HBM3"}}`, http.StatusForbidden},
	} {
		if got := world.Ask(t, at(data), world.Request(call.method, call.path, call.key, call.body)); got.Status != call.want {
			t.Fatalf("%s %s: status %d, want %d: %s", call.method, call.path, got.Status, call.want, got.Body)
		}
	}
	page(t, http.MethodPost, "https://"+at(admin)+"/admin/spend/reconcile?org=acme")
	return labels(page(t, http.MethodGet, "https://"+at(admin)+"/metrics"))
}

// page asks the admin listener of a gateway.
func page(t *testing.T, method, url string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // it was made for this test
	}}
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s %s", method, url, res.Status, text)
	}
	return string(text)
}

// labels reads the text format of Prometheus. Series of one name may differ in
// their labels; all count.
func labels(text string) map[string][]string {
	series := regexp.MustCompile(`(?m)^([a-z_][a-z0-9_]*)(?:\{(.*)\})? \S+$`)
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
