package browser

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// chromium finds the browser, or skips the test where none is required.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("TOLLGATE_REQUIRE_CHROMIUM") != "" {
		t.Fatal("no chromium in PATH; make test installs one")
	}
	t.Skip("no chromium in PATH; make test installs one")
	return ""
}

// serve runs a gateway over an emulator.
func serve(t *testing.T) *httptest.Server {
	t.Helper()
	p := platform.RunT(t)
	cfg := world.Configuration(t, `
platform: {base_url: "`+p.URL+`"}
redis: {embedded: true}
orgs:
  - id: acme
    credential: {env: KEY}
    keys: [{id: a, sha256: SHA256(key_of_nobody)}]
`, map[string]string{"KEY": platform.DefaultKey})
	g := world.Gateway(t, cfg, gateway.Deps{Redis: world.Redis(t, miniredis.RunT(t).Addr())})
	s := httptest.NewServer(g.Handler())
	t.Cleanup(s.Close)
	return s
}

// dom returns a page as the browser built it. The browser can reach nothing
// but this machine.
func dom(t *testing.T, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	// The browser's helpers may outlive it for a moment and still write there, so
	// it may not go at once; t.TempDir would fail the test for that.
	profile, err := os.MkdirTemp("", "tollgate-browser") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(profile) }()
	cmd := exec.CommandContext(ctx, chromium(t), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--user-data-dir="+profile, "--dump-dom", url)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("chromium: %v", err)
	}
	return string(out)
}

// The page of the retired API renders without a key, by itself.
func TestTheV1PageRenders(t *testing.T) {
	s := serve(t)
	got := dom(t, s.URL+"/v1/docs")
	for _, want := range []string{"<h1", "/v1/openapi.json", "2026-11-15"} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "<script") || strings.Contains(got, "src=\"http") {
		t.Errorf("the page runs or fetches something:\n%s", got)
	}
}

// An error is shown as text: nothing a caller writes into a path becomes markup.
func TestRefusalsAreNotMarkup(t *testing.T) {
	s := serve(t)
	res, err := s.Client().Get(s.URL + "/v2/%3Cscript%3Ealert(1)%3C%2Fscript%3E")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if ct := res.Header.Get("Content-Type"); ct != "application/problem+json" || res.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%d with Content-Type %q and X-Content-Type-Options %q", res.StatusCode, ct, res.Header.Get("X-Content-Type-Options"))
	}
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("status = %d, want 401", res.StatusCode)
	}
}
