package policies_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/bundle"
	sdktest "github.com/open-policy-agent/opa/v1/sdk/test"

	"github.com/tollgate-dev/tollgate/config/egress"
	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// denyAbove is a policy that refuses more than the given number of GPUs.
func denyAbove(n string) string {
	return "package policies.mine\n\ndeny contains \"above " + n + "\" if input.resource.after.gpu.count > " + n + "\n"
}

// keyPair is an ECDSA key and the file its public half is in.
func keyPair(tb testing.TB) (private, publicFile string) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	priv, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	pub, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		tb.Fatal(err)
	}
	publicFile = filepath.Join(tb.TempDir(), "key.pem")
	if err := os.WriteFile(publicFile, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pub}), 0o600); err != nil {
		tb.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: priv})), publicFile
}

// makeBundle packs a policy, signed unless private is empty.
func makeBundle(tb testing.TB, revision, rego, private string) []byte {
	tb.Helper()
	m, err := ast.ParseModuleWithOpts("mine.rego", rego, ast.ParserOptions{RegoVersion: ast.RegoV1})
	if err != nil {
		tb.Fatal(err)
	}
	b := bundle.Bundle{
		Manifest: bundle.Manifest{Revision: revision, Roots: &[]string{""}},
		Data:     map[string]any{},
		Modules:  []bundle.ModuleFile{{URL: "mine.rego", Path: "mine.rego", Raw: []byte(rego), Parsed: m}},
	}
	if private != "" {
		if err := b.GenerateSignature(bundle.NewSigningConfig(private, "ES256", ""), "k1", false); err != nil {
			tb.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := bundle.NewWriter(&out).Write(b); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// bundleServer serves the bundles it is given, with ETags.
type bundleServer struct {
	mu       sync.Mutex
	body     []byte
	etag     string
	status   int
	looks    atomic.Int64
	hits     atomic.Int64
	gotToken atomic.Value
}

func (s *bundleServer) set(etag string, body []byte, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.body, s.etag, s.status = body, etag, status
}

func (s *bundleServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks.Add(1)
	s.gotToken.Store(r.Header.Get("Authorization"))
	if s.status != http.StatusOK {
		w.WriteHeader(s.status)
		return
	}
	w.Header().Set("ETag", s.etag)
	if r.Header.Get("If-None-Match") == s.etag {
		s.hits.Add(1)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(s.body)
}

// unhurried are limits under which the first decision is in time on a busy machine.
func unhurried() policies.Limits {
	limits := policyconfig.DefaultLimits()
	limits.Deadline = 10 * time.Second
	return limits
}

// follow runs an engine until the test ends.
func follow(t *testing.T, cfg policies.Config) *policies.Engine {
	t.Helper()
	return followAfter(t, nil, cfg)
}

// followAfter runs an engine in the place of another until the test ends.
func followAfter(t *testing.T, previous *policies.Engine, cfg policies.Config) *policies.Engine {
	t.Helper()
	e, err := policies.NewEngine(unhurried(), map[string]policies.Config{"acme": cfg}, policies.Deps{Previous: previous})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: got %v, want context.Canceled", err)
		}
	})
	return e
}

// eventually waits for a condition that another goroutine brings about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(2 * time.Minute)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never happened: %s", what)
		}
	}
}

func denials(t *testing.T, e *policies.Engine, count string) string {
	t.Helper()
	d, err := e.Decide(t.Context(), "acme", call(t, "createPod", `{"gpu":{"id":"NVIDIA L4","count":`+count+`}}`))
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, v := range d.Deny {
		out = append(out, v.Message)
	}
	return strings.Join(out, ", ")
}

func TestBundleLife(t *testing.T) {
	private, public := keyPair(t)
	srv := &bundleServer{}
	srv.set(`"a"`, makeBundle(t, "r1", denyAbove("2"), private), http.StatusServiceUnavailable)
	ts := httptest.NewServer(srv)
	defer ts.Close()
	token := filepath.Join(t.TempDir(), "token")
	write(t, filepath.Dir(token), "token", "s3cret\n")
	cfg := policies.Config{Bundle: &policies.Bundle{
		URL: egress.UnrestrictedURL(ts.URL), Poll: 5 * time.Millisecond, TokenFile: files.UnrestrictedCredential(token),
		Key:     &policies.BundleKey{ID: "k1", File: files.UnrestrictedCredential(public), Algorithm: "ES256"},
		Persist: files.UnrestrictedTarget(filepath.Join(t.TempDir(), "last.tar.gz")),
	}}
	e := follow(t, cfg)

	eventually(t, "a failed look", func() bool { return e.Status()[0].Err != nil })
	if got := denials(t, e, "3"); !strings.Contains(got, policies.ErrBundlePending.Error()) {
		t.Errorf("before the first bundle: got %q, want an error", got)
	}
	srv.set(`"a"`, makeBundle(t, "r1", denyAbove("2"), private), http.StatusOK)
	eventually(t, "the first bundle", func() bool { return e.Status()[0].Bundle == "r1" })
	if got, want := denials(t, e, "3"), "above 2"; got != want {
		t.Errorf("first bundle: got %q, want %q", got, want)
	}
	if got, want := srv.gotToken.Load(), "Bearer s3cret"; got != want {
		t.Errorf("token: got %q, want %q", got, want)
	}
	before := srv.hits.Load()
	eventually(t, "a look that finds nothing new", func() bool { return srv.hits.Load() > before })

	otherKey, _ := keyPair(t)
	broken := []struct {
		name string
		body []byte
		want string
	}{
		{"unsigned", makeBundle(t, "bad", denyAbove("9"), ""), "signatures"},
		{"another key", makeBundle(t, "bad", denyAbove("9"), otherKey), "verif"},
		{"does not compile", makeBundle(t, "bad", "package policies.mine\n\ndeny contains x if true\n", private), "unsafe"},
		{"flipped byte", flipped(makeBundle(t, "bad", denyAbove("9"), private)), ""},
		{"no archive", []byte("hello"), "archive"},
	}
	for _, b := range broken {
		srv.set(`"`+b.name+`"`, b.body, http.StatusOK)
		eventually(t, b.name+" is noticed", func() bool {
			err := e.Status()[0].Err
			return err != nil && strings.Contains(err.Error(), b.want)
		})
		if got, want := denials(t, e, "3"), "above 2"; got != want {
			t.Errorf("%s: got %q, want %q", b.name, got, want)
		}
		if got := e.Status()[0].Bundle; got != "r1" {
			t.Errorf("%s: revision %q is in use, want r1", b.name, got)
		}
		srv.set(`"a"`, makeBundle(t, "r1", denyAbove("2"), private), http.StatusOK)
		eventually(t, "recovery from "+b.name, func() bool { return e.Status()[0].Err == nil })
	}

	srv.set(`"b"`, makeBundle(t, "r2", denyAbove("4"), private), http.StatusOK)
	eventually(t, "the second bundle", func() bool { return e.Status()[0].Bundle == "r2" })
	if got := denials(t, e, "3"); got != "" {
		t.Errorf("second bundle: got %q, want no denial", got)
	}

	srv.set("", nil, http.StatusInternalServerError)
	again, err := policies.NewEngine(unhurried(), map[string]policies.Config{"acme": cfg}, policies.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := denials(t, again, "5"), "above 4"; got != want {
		t.Errorf("after a restart: got %q, want %q from the persisted bundle", got, want)
	}
}

// flipped changes one bit of a bundle's content and packs it again.
func flipped(raw []byte) []byte {
	zip, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		panic(err)
	}
	var out bytes.Buffer
	var plain bytes.Buffer
	if _, err := plain.ReadFrom(zip); err != nil {
		panic(err)
	}
	w := gzip.NewWriter(&out)
	_, _ = w.Write(bytes.Replace(plain.Bytes(), []byte("above 9"), []byte("above 8"), 1))
	_ = w.Close()
	return out.Bytes()
}

// TestBundleFromOPAsServer uses the bundle server OPA has for tests.
func TestBundleFromOPAsServer(t *testing.T) {
	srv := sdktest.MustNewServer(
		sdktest.MockBundle("/bundles/acme.tar.gz", map[string]string{"mine.rego": denyAbove("2")}),
		sdktest.ParserOptions(ast.ParserOptions{RegoVersion: ast.RegoV1}),
	)
	defer srv.Stop()
	e := follow(t, policies.Config{Bundle: &policies.Bundle{
		URL: egress.UnrestrictedURL(srv.URL() + "/bundles/acme.tar.gz"), Poll: time.Hour, AllowUnsigned: true,
	}})
	eventually(t, "the bundle", func() bool { return e.Status()[0].Revision != "" })
	if got, want := denials(t, e, "3"), "above 2"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBundleFromFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.tar.gz")
	put := func(raw []byte) { replaceFile(t, file, raw) }
	put(makeBundle(t, "r1", denyAbove("2"), ""))
	e := follow(t, policies.Config{Bundle: &policies.Bundle{File: files.UnrestrictedPath(file), Poll: 5 * time.Millisecond, AllowUnsigned: true}})
	if got, want := denials(t, e, "3"), "above 2"; got != want {
		t.Errorf("at the start: got %q, want %q", got, want)
	}
	put(makeBundle(t, "r2", denyAbove("4"), ""))
	eventually(t, "the new file", func() bool { return e.Status()[0].Bundle == "r2" })
	if got := denials(t, e, "3"); got != "" {
		t.Errorf("new file: got %q, want no denial", got)
	}
}

// bundleOf packs files as they are, with a manifest.
func bundleOf(tb testing.TB, revision string, files map[string]string) []byte {
	tb.Helper()
	files[".manifest"] = `{"revision": "` + revision + `", "roots": [""]}`
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(files[name]))}); err != nil {
			tb.Fatal(err)
		}
		if _, err := w.Write([]byte(files[name])); err != nil {
			tb.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zip.Close()); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// replaceFile changes a file at once, so that no look sees half of it.
func replaceFile(tb testing.TB, file string, raw []byte) {
	tb.Helper()
	if err := os.WriteFile(file+".new", raw, 0o600); err != nil {
		tb.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		tb.Fatal(err)
	}
}

// other is a policy beside mine.
const other = "package policies.other\n\ndeny contains \"other\"\n"
