package browser

import (
	"bufio"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/chromedp/chromedp"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// provider runs oidc-provider until the test ends, and returns its URL. Its client may send people back to some addresses.
func provider(t *testing.T, redirects ...string) string {
	t.Helper()
	found, _ := filepath.Glob("../../.tools/clients/oidc-provider-*/node_modules/oidc-provider/lib/index.js")
	node, err := exec.LookPath("node")
	if len(found) == 0 || err != nil {
		if os.Getenv("TOLLGATE_REQUIRE_OIDC_PROVIDER") != "" {
			t.Fatal("no node, or no oidc-provider in .tools; make test installs them")
		}
		t.Skip("no node, or no oidc-provider in .tools; make test installs them")
	}
	module, err := filepath.Abs(found[len(found)-1])
	if err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(redirects)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, "issuer.mjs")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "PROVIDER=" + module, "REDIRECTS=" + string(list)}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close() // which ends it
		if _ = cmd.Wait(); t.Failed() {
			t.Logf("the issuer wrote: %s", &stderr)
		}
	})
	url, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatalf("the issuer ended: %v", err)
	}
	return strings.TrimSpace(url)
}

// serveIssued runs a gateway both of whose consoles send people to an issuer.
func serveIssued(t *testing.T) *house {
	t.Helper()
	h := &house{httptest.NewUnstartedServer(nil), httptest.NewUnstartedServer(nil)}
	address := func(s *httptest.Server) string { return "http://" + s.Listener.Addr().String() }
	issuer := provider(t, address(h.admin)+"/ui/login/callback", address(h.data)+"/tollgate/ui/login/callback")
	p := platform.RunT(t)
	cfg := world.Configuration(t, `
platform: {base_url: "`+p.URL+`"}
redis: {embedded: true}
admin:
  issuers:
    - id: corp
      url: "`+issuer+`"
      audiences: [console]
      grants: {gpu-admins: admin}
      login: {client_id: console, client_secret: {env: CONSOLE_SECRET}, scopes: [groups]}
issuers:
  - id: corp
    url: "`+issuer+`"
    audiences: [console]
    orgs: [acme]
    team: research
    claims: {roles: groups}
    grants: {researchers: operator}
    login: {client_id: console, client_secret: {env: CONSOLE_SECRET}, scopes: [groups]}
orgs:
  - id: acme
    credential: {env: KEY}
    teams: [{id: research, budget: {per_hour: 3}}]
    keys: [{id: ann, team: research, sha256: SHA256(key_of_ann)}]
`, map[string]string{"KEY": platform.DefaultKey, "CONSOLE_SECRET": "secret_of_the_console"})
	g := world.Gateway(t, cfg, gateway.Deps{Redis: world.Redis(t, miniredis.RunT(t).Addr())})
	h.data.Config.Handler, h.admin.Config.Handler = g.Handler(), g.AdminHandler()
	h.data.Start()
	h.admin.Start()
	t.Cleanup(h.data.Close)
	t.Cleanup(h.admin.Close)
	return h
}

// loginAt logs in at the issuer, and passes the identity on to the console.
func loginAt(t *testing.T, b *tab, page, name string) {
	t.Helper()
	b.do(t, chromedp.Navigate(page))
	visit(t, b, "Sign in with corp", `document.querySelector('input[name="login"]') !== null`)
	b.do(t, chromedp.SendKeys(chromedp.CSS(`input[name="login"]`), name), chromedp.SendKeys(chromedp.CSS(`input[name="password"]`), "any"))
	click(t, b, `button[type="submit"]`)
	b.until(t, `document.querySelector('input[name="prompt"][value="consent"]') !== null`)
	click(t, b, `button[type="submit"]`)
}

// People log in at a real issuer, and out: operators at the console, callers at their own pages.
func TestLoginAtARealIssuer(t *testing.T) {
	h := serveIssued(t)
	t.Run("operators", func(t *testing.T) {
		b := openTab(t)
		loginAt(t, b, h.admin.URL+"/ui/keys", "admin-ada")
		b.until(t, `location.pathname === "/ui/keys" && document.querySelector("header").textContent.includes("corp:admin-ada")`)
		shows(t, b, "ann")
		click(t, b, `form[action="/ui/logout"] button`)
		b.until(t, `location.pathname === "/ui/login"`)
		b.do(t, chromedp.Navigate(h.admin.URL+"/ui/keys"))
		b.until(t, `location.pathname === "/ui/login"`)
	})
	t.Run("callers", func(t *testing.T) {
		b := openTab(t)
		loginAt(t, b, h.data.URL+"/tollgate/ui/cost", "rob")
		b.until(t, `location.pathname === "/tollgate/ui/cost" && document.querySelector("header").textContent.includes("rob")`)
		visit(t, b, "My team", `location.pathname === "/tollgate/ui/"`)
		shows(t, b, "research")
		click(t, b, `form[action="/tollgate/ui/logout"] button`)
		b.until(t, `location.pathname === "/tollgate/ui/login"`)
		b.do(t, chromedp.Navigate(h.data.URL+"/tollgate/ui/"))
		b.until(t, `location.pathname === "/tollgate/ui/login"`)
	})
	t.Run("a person without a role", func(t *testing.T) {
		b := openTab(t)
		loginAt(t, b, h.admin.URL+"/ui/", "rob")
		b.until(t, `location.pathname === "/ui/login/callback" && document.querySelector('[role="alert"]').textContent.includes("role")`)
	})
}
