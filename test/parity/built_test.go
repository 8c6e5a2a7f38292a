package parity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/bundle"
	"github.com/tollgate-dev/tollgate/policies/section"
)

// What tollgate builds of a directory a gateway takes: signed with a key it has, and with
// no other. The library's helpers are there, tests are not.
func TestABuiltBundleIsTaken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("acme/few.rego", "package policies.few\n\nimport data.tollgate.value\n\ndeny contains \"too many\" if value.exceeds(input.resource.after.gpu.count, data.most.gpus)\n")
	write("acme/few_test.rego", "package policies.few_test\n\ntest_it if true\n")
	write("acme/most/data.yaml", "gpus: 1\n")
	pair := func(name string) (private []byte, public string) {
		t.Helper()
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		pub, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), write(name, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pub})))
	}
	private, public := pair("key.pem")
	_, stranger := pair("other.pem")
	built := func(s bundle.Signing) string {
		t.Helper()
		archive, names, err := bundle.Build(filepath.Join(dir, "acme"), "r1", &s)
		if err != nil || len(names) != 1 || names[0] != "few" {
			t.Fatalf("built %q: %v", names, err)
		}
		return write("acme.tar.gz", string(archive))
	}
	file := built(bundle.Signing{Key: private, ID: "k1"})
	eachDoor(t, func(t *testing.T, d *door) {
		if a := d.ask(t, request("POST", "/v2/pods", "key_exempt", podNamed("a"))); a.Status != 201 {
			t.Errorf("one GPU: %d %s, want 201", a.Status, a.Body)
		}
		two := strings.Replace(podNamed("b"), `"NVIDIA L4"`, `"NVIDIA L4","count":2`, 1)
		if a := d.ask(t, request("POST", "/v2/pods", "key_exempt", two)); a.Status != 403 || !strings.Contains(a.Body, "too many") {
			t.Errorf("two GPUs: %d %s, want 403", a.Status, a.Body)
		}
	}, func(d *door) {
		before, rest, _ := strings.Cut(configuration, "    policies:\n")
		_, after, _ := strings.Cut(rest, "\n    teams:")
		d.text = before + "    bundle: {file: " + file + ", key: {id: k1, file: " + public + ", algorithm: ES256}}\n    teams:" + after
	})
	for name, tt := range map[string]struct {
		sign bundle.Signing
		key  string
		says string
	}{
		"another's key": {bundle.Signing{Key: private, ID: "k1"}, stranger, "invalid ECDSA signature"},
		"not signed":    {bundle.Signing{}, public, "missing .signatures.json"},
	} {
		given := &policies.Bundle{File: files.UnrestrictedPath(built(tt.sign)), Key: &policies.BundleKey{ID: "k1", File: files.UnrestrictedCredential(tt.key), Algorithm: "ES256"}}
		_, err := policies.NewEngine(section.DefaultLimits(), map[string]policies.Config{"acme": {Bundle: given}}, policies.Deps{})
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", name, err, tt.says)
		}
	}
}
