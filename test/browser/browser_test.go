package browser

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/chromedp/chromedp"
	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// chromium finds the browser, or skips the test where none is required.
func chromium(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a browser")
	}
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
	return serveWith(t, p, `, run_url: "`+p.RunURL+`"`)
}

// serveWith is serve with settings of the platform.
func serveWith(t *testing.T, p *platform.Instance, settings string) *httptest.Server {
	t.Helper()
	cfg := world.Configuration(t, `
platform: {base_url: "`+p.URL+`"`+settings+`}
redis: {embedded: true}
orgs:
  - id: acme
    credential: {env: KEY}
    budget: {per_hour: 5}
    policies: [{policy: gpu_count, params: {max_per_pod: 2}}, {policy: gpu_allow_list, params: {gpus: [NVIDIA L4]}}]
    keys: [{id: a, sha256: SHA256(key_of_nobody), limits: {minute: 600}}]
`, map[string]string{"KEY": platform.DefaultKey})
	g := world.Gateway(t, cfg, gateway.Deps{Redis: world.Redis(t, miniredis.RunT(t).Addr())})
	s := httptest.NewServer(g.Handler())
	t.Cleanup(s.Close)
	return s
}

// The page that answers of the retired API link to leads to its reference.
func TestTheV1PageLeadsToTheReference(t *testing.T) {
	b := openTab(t)
	b.do(t, chromedp.Navigate(serve(t).URL+"/v1/docs"))
	b.until(t, `location.pathname === "/docs" && document.querySelectorAll("#v1 .opblock").length >= 30`)
}

// Where runs are not served, the page does not offer them.
func TestRunsThatAreNotServed(t *testing.T) {
	b := openTab(t)
	b.do(t, chromedp.Navigate(serveWith(t, platform.RunT(t), "").URL+"/docs"))
	b.until(t, `document.querySelector("#tab-run").hidden && document.querySelectorAll("#v2 .opblock").length >= 50`)
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
