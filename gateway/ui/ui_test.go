package ui_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// TestMain looks for goroutines left behind. A client whose server is away dials once more a second after it was closed.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// text is a configuration with an admin of each role, and one bound to an organisation.
const text = `
platform: {base_url: "PLATFORM"}
redis: {embedded: true}
admin: {admins: [
  {name: vera, sha256: SHA256(token_vera), roles: [viewer]},
  {name: olga, sha256: SHA256(token_olga), roles: [operator]},
  {name: anna, sha256: SHA256(token_anna), roles: [approver]},
  {name: root, sha256: SHA256(token_root), roles: [admin]},
  {name: bond, sha256: SHA256(token_bond), roles: [viewer], org: acme}]}
orgs:
  - id: acme
    credential: {env: KEY}
    teams: [{id: research, budget: {per_hour: 5}}]
    idle: {for: 1h}
    policies: [{policy: gpu_count, params: {max_per_pod: 2}}]
    keys: [{id: ann, team: research, sha256: SHA256(key_of_ann), limits: {minute: 600}}]
  - id: globex
    credential: {env: OTHER}
    keys: [{id: bob, sha256: SHA256(key_of_bob)}]
`

// console is a gateway and its admin listener.
type console struct {
	*httptest.Server

	gateway *gateway.Gateway
	text    string
	// ahead is how far the gateway's clock is.
	ahead atomic.Int64
}

// start runs a gateway over a store.
func start(t *testing.T, text string, store *miniredis.Miniredis) *console {
	t.Helper()
	p := platform.RunT(t)
	c := &console{text: strings.ReplaceAll(text, "PLATFORM", p.URL)}
	c.gateway = world.Gateway(t, c.config(t, c.text), gateway.Deps{
		Redis: world.Redis(t, store.Addr()), Now: func() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) },
	})
	c.serve(t)
	return c
}

// serve opens the admin listener.
func (c *console) serve(tb testing.TB) {
	tb.Helper()
	c.Server = httptest.NewServer(c.gateway.AdminHandler())
	tb.Cleanup(c.Close)
}

func (c *console) config(tb testing.TB, text string) settings.Config {
	tb.Helper()
	return world.Configuration(tb, text, map[string]string{"KEY": platform.DefaultKey, "OTHER": "platform-key-of-globex"})
}

// person is a browser without scripts.
type person struct {
	tb   testing.TB
	http *http.Client
}

// visitor returns a person without a session, and follows no redirect.
func (c *console) visitor(tb testing.TB) *person {
	tb.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		tb.Fatal(err)
	}
	client := *c.Client()
	client.Jar, client.CheckRedirect = jar, func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &person{tb, &client}
}

// as returns a person with a session.
func (c *console) as(tb testing.TB, name string) *person {
	tb.Helper()
	p := c.visitor(tb)
	if status, _, body := p.post(c.URL+"/ui/login", url.Values{"token": {"token_" + name}}); status != http.StatusSeeOther {
		tb.Fatalf("login as %s: %d %s", name, status, body)
	}
	return p
}

func (p *person) do(r *http.Request) (int, http.Header, string) {
	p.tb.Helper()
	res, err := p.http.Do(r)
	if err != nil {
		p.tb.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		p.tb.Fatal(err)
	}
	return res.StatusCode, res.Header, string(body)
}

func (p *person) get(address string) (int, http.Header, string) {
	p.tb.Helper()
	r, err := http.NewRequestWithContext(p.tb.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		p.tb.Fatal(err)
	}
	return p.do(r)
}

func (p *person) post(address string, form url.Values, header ...string) (int, http.Header, string) {
	p.tb.Helper()
	r, err := http.NewRequestWithContext(p.tb.Context(), http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		p.tb.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return p.do(r)
}

// Each action requires the role of its row, and a bound admin acts in no other organisation.
func TestEveryRoleByEveryAction(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	roles := map[string]adminapi.Role{"vera": adminapi.Viewer, "olga": adminapi.Operator, "anna": adminapi.Approver, "root": adminapi.Admin, "bond": adminapi.Viewer}
	people := make(map[string]*person)
	for name := range roles {
		people[name] = c.as(t, name)
	}
	actions := 0
	for _, r := range gateway.AdminRows() {
		if !r.Mutates {
			continue
		}
		actions++
		path := c.URL + "/ui" + strings.TrimPrefix(r.Path(), "/admin")
		if status, header, _ := c.visitor(t).post(path, nil); status != http.StatusSeeOther || header.Get("Location") != "/ui/login" {
			t.Errorf("%s without a session: %d to %q, want 303 to the login", r.Pattern, status, header.Get("Location"))
		}
		if status, _, _ := people["root"].get(path); status != http.StatusMethodNotAllowed && status != http.StatusNotFound { // no key has such an id
			t.Errorf("GET %s: %d, want 405 or 404", path, status)
		}
		for name, role := range roles {
			allowed := role == adminapi.Admin || role == r.Role
			status, _, body := people[name].post(path, url.Values{"org": {"acme"}, "back": {"/ui/gateways"}})
			if refused := status == http.StatusForbidden; refused == allowed {
				t.Errorf("%s as %s: %d %s", r.Pattern, name, status, body)
			}
		}
	}
	if actions < 10 {
		t.Errorf("%d actions", actions)
	}
	if status, _, _ := people["bond"].get(c.URL + "/ui/keys?org=globex"); status != http.StatusForbidden {
		t.Errorf("keys of another organisation: %d, want 403", status)
	}
}

// Everybody sees the pages that the navigation has, and gets 403 from the others.
func TestPagesByRole(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	for _, name := range []string{"vera", "root", "bond"} {
		p := c.as(t, name)
		_, _, first := p.get(c.URL + "/ui/")
		for _, page := range pages {
			path, _, _ := strings.Cut(page, "?")
			listed := strings.Contains(first, `<li><a href="`+path+`?org=acme"`)
			status, _, body := p.get(c.URL + page)
			want := http.StatusForbidden
			if listed {
				want = http.StatusOK
			}
			if status != want {
				t.Errorf("%s as %s: %d, want %d: %s", page, name, status, want, body)
			}
		}
		if bound := strings.Contains(first, "/ui/gateways"); bound == (name == "bond") {
			t.Errorf("the navigation of %s has the fleet: %t", name, bound)
		}
		if acts := strings.Contains(first, "globex"); acts == (name == "bond") {
			t.Errorf("the page of %s names globex: %t", name, acts)
		}
	}
	_, _, keys := c.as(t, "vera").get(c.URL + "/ui/keys?org=acme")
	if strings.Contains(keys, "/ui/create-key") {
		t.Error("a viewer is offered to create keys")
	}
	if status, _, _ := c.as(t, "vera").get(c.URL + "/ui/create-key?org=acme"); status != http.StatusForbidden {
		t.Errorf("the form of a key as a viewer: %d, want 403", status)
	}
}

// inline is markup that the policy of pages forbids.
var inline = regexp.MustCompile(`(?i)<script>|<script [^s]|<script src="[^/]|<style|\sstyle=|\son[a-z]+=|javascript:|https?://`)

func TestHeadersOfPages(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	p := c.as(t, "root")
	for _, page := range slices.Concat(pages, []string{"/ui/login", "/ui/requests/none", "/ui/nothing"}) {
		_, header, body := p.get(c.URL + page)
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
			"Cache-Control":           "no-store",
			"X-Content-Type-Options":  "nosniff",
			"Referrer-Policy":         "same-origin",
		} {
			if got := header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", page, name, got, want)
			}
		}
		if found := inline.FindString(body); found != "" {
			t.Errorf("%s has %q", page, found)
		}
	}
	for file, kind := range map[string]string{"style.css": "text/css", "console.js": "text/javascript", "icons.svg": "image/svg+xml"} {
		if status, header, _ := p.get(c.URL + "/ui/" + file); status != http.StatusOK || !strings.HasPrefix(header.Get("Content-Type"), kind) {
			t.Errorf("%s: %d %s", file, status, header.Get("Content-Type"))
		}
	}
}

// Pages may have a content coding. A page with a secret has none, since the compressed length tells about it; nor have pages that lead to a
// session.
func TestCodingsOfPages(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	p := c.as(t, "root")
	for _, page := range pages {
		if _, header, _ := p.get(c.URL + page); header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s has no coding", page)
		}
	}
	if _, header, _ := p.get(c.URL + "/ui/login"); header.Get("Vary") != "" {
		t.Error("the page of the login may have a coding")
	}
	form := url.Values{"org": {"acme"}, "id": {"batch"}, "team": {"research"}, "roles": {"viewer"}, "expires": {"2099-01-01"}, "back": {"/ui/keys"}}
	if status, header, body := p.post(c.URL+"/ui/keys/create", form); status != http.StatusOK || !strings.Contains(body, "tg_") || header.Get("Vary") != "" {
		t.Errorf("the page of a new secret: %d, Vary %q", status, header.Get("Vary"))
	}
}

// Pages of other sites change nothing.
func TestFormsOfOtherSites(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	p := c.as(t, "root")
	for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
		for _, path := range []string{"/ui/limits/reset", "/ui/login", "/ui/logout", "/ui/dry-run"} {
			if status, _, _ := p.post(c.URL+path, url.Values{"org": {"acme"}, "token": {"token_vera"}}, header...); status != http.StatusForbidden {
				t.Errorf("%s with %q: %d, want 403", path, header, status)
			}
		}
	}
}

// Beyond loopback the console is served over TLS only.
func TestBeyondLoopback(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	for address, want := range map[string]int{"192.0.2.1:8081": http.StatusForbidden, "127.0.0.1:8081": http.StatusOK, "[::1]:8081": http.StatusOK} {
		local, err := net.ResolveTCPAddr("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodGet, "/ui/login", http.NoBody)
		w := httptest.NewRecorder()
		c.gateway.AdminHandler().ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(local))))
		if w.Code != want {
			t.Errorf("at %s: %d, want %d", address, w.Code, want)
		}
	}
}

func TestTheConsoleCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	c := start(t, strings.Replace(text, "admin: {", "admin: {console: false, ", 1), miniredis.RunT(t))
	if status, _, _ := c.visitor(t).get(c.URL + "/ui/"); status != http.StatusNotFound {
		t.Errorf("the console: %d, want 404", status)
	}
}

// Where no token is required, the console asks for none, and names that can be pointed here are refused.
func TestWithoutAnyAdmin(t *testing.T) {
	t.Parallel()
	open := regexp.MustCompile(`(?s)admin: \{.*?\]\}\n`).ReplaceAllString(text, "")
	c := start(t, open, miniredis.RunT(t))
	p := c.visitor(t)
	if status, _, body := p.get(c.URL + "/ui/"); status != http.StatusOK || !strings.Contains(body, "Sign-in is off") {
		t.Errorf("the first page: %d %s", status, body)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.URL+"/ui/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "console.evil.example"
	if status, _, _ := p.do(r); status != http.StatusMisdirectedRequest {
		t.Errorf("under another name: %d, want 421", status)
	}
}

// An action is recorded as the call of the API would be, under the name of the person.
func TestActionsAreAudited(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	c := start(t, text+"audit: {file: {path: "+file+"}}\n", miniredis.RunT(t))
	if status, header, body := c.as(t, "olga").post(c.URL+"/ui/limits/reset", url.Values{"org": {"acme"}, "scope": {"key:ann"}, "back": {"/ui/limits?org=acme"}, "confirmed": {"yes"}}); status != http.StatusSeeOther || header.Get("Location") != "/ui/limits?org=acme" {
		t.Fatalf("%d to %q: %s", status, header.Get("Location"), body)
	}
	lines, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"who":"olga"`, `"operation":"POST /admin/limits/reset"`, `"query":"org=acme\u0026scope=key%3Aann"`, `"peer":"127.0.0.1"`} {
		if !strings.Contains(string(lines), want) {
			t.Errorf("the audit log lacks %s: %s", want, lines)
		}
	}
}

// A key is shown once when it is made, and its secret works.
func TestKeysAreMadeRotatedAndRevoked(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	p := c.as(t, "root")
	secret := regexp.MustCompile(`value="(tg_[A-Z0-9]+)"`)
	status, _, body := p.post(c.URL+"/ui/keys/create", url.Values{
		"org": {"acme"}, "id": {"batch"}, "team": {"research"}, "roles": {"viewer", "operator"}, "expires": {"2099-01-01"},
		"limit.minute": {"7"}, "limit.hour": {""}, "budget.per_hour": {"1.5"}, "back": {"/ui/keys"},
	})
	made := secret.FindStringSubmatch(body)
	if status != http.StatusOK || made == nil {
		t.Fatalf("make: %d %s", status, body)
	}
	calls := func(key string) int {
		r := httptest.NewRequest(http.MethodGet, "/v2/pods", http.NoBody)
		r.Header.Set("Authorization", "Bearer "+key)
		w := httptest.NewRecorder()
		c.gateway.Handler().ServeHTTP(w, r)
		return w.Code
	}
	if got := calls(made[1]); got != http.StatusOK {
		t.Errorf("a call with the new key: %d", got)
	}
	_, _, list := p.get(c.URL + "/ui/keys/batch?org=acme")
	for _, want := range []string{"batch", "7 per minute", "per hour 1.5", "2099-01-01 00:00 UTC", "root"} {
		if !strings.Contains(list, want) {
			t.Errorf("the list lacks %q", want)
		}
	}
	if strings.Contains(list, made[1]) {
		t.Error("the list shows the secret")
	}
	_, _, body = p.post(c.URL+"/ui/keys/rotate", url.Values{"org": {"acme"}, "id": {"batch"}, "overlap": {"0s"}, "confirmed": {"yes"}})
	next := secret.FindStringSubmatch(body)
	if next == nil || next[1] == made[1] || calls(made[1]) != http.StatusUnauthorized || calls(next[1]) != http.StatusOK {
		t.Errorf("rotate: %s", body)
	}
	if status, _, body := p.post(c.URL+"/ui/keys/revoke", url.Values{"org": {"acme"}, "id": {"batch"}, "confirmed": {"yes"}}); status != http.StatusSeeOther || calls(next[1]) != http.StatusUnauthorized {
		t.Errorf("revoke: %d %s", status, body)
	}
	if status, _, body := p.post(c.URL+"/ui/keys/create", url.Values{"org": {"acme"}, "id": {"ann"}, "limit.minute": {"many"}}); status != http.StatusUnprocessableEntity || !strings.Contains(body, "limits.minute: expected an integer") {
		t.Errorf("a limit that is no number: %d %s", status, body)
	}
}

// No address makes a notice of an action.
func TestNoTextOfTheAddressIsShown(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	p := c.as(t, "vera")
	for _, action := range []string{"limits/reset", "keys/revoke", "your+account+is+locked"} {
		if _, _, body := p.get(c.URL + "/ui/?done=" + action); strings.Contains(body, `role="status"`) {
			t.Errorf("the address makes a notice: %s", action)
		}
	}
	status, _, body := p.get(c.URL + "/ui/requests?team=%3Cb%3Enobody&since=%22%3E%3Cimg%3E")
	if status != http.StatusNotFound && status != http.StatusBadRequest || strings.Contains(body, "<b>nobody") || strings.Contains(body, "<img>") {
		t.Errorf("parameters that are wrong: %d %s", status, body)
	}
}

// The spend on a page can be downloaded, and no cell is a formula.
func TestSpendAsCSV(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	p := c.as(t, "bond")
	status, header, body := p.get(c.URL + "/ui/cost.csv?by=team,key")
	if status != http.StatusOK || header.Get("Content-Disposition") != `attachment; filename="cost-acme.csv"` || !strings.HasPrefix(body, "start,end,team,key,usd\n") {
		t.Errorf("%d %v %q", status, header, body)
	}
	if status, _, _ := p.get(c.URL + "/ui/cost.csv?org=globex"); status != http.StatusForbidden {
		t.Errorf("another organisation: %d, want 403", status)
	}
}

// A dry run shows the outcome of a call.
func TestDryRun(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	body, err := json.Marshal(map[string]any{"name": "x", "image": "i:1", "gpu": map[string]any{"id": "NVIDIA L4", "count": 3}})
	if err != nil {
		t.Fatal(err)
	}
	status, _, page := c.as(t, "vera").post(c.URL+"/ui/dry-run", url.Values{"org": {"acme"}, "method": {"POST"}, "path": {"/v2/pods"}, "key": {"ann"}, "body": {string(body)}})
	if status != http.StatusOK || !strings.Contains(page, "3 GPUs per pod exceed the limit of 2") {
		t.Errorf("%d %s", status, page)
	}
	if status, _, page := c.as(t, "vera").post(c.URL+"/ui/dry-run", url.Values{"org": {"acme"}, "path": {"/v2/pods"}, "key": {"nobody"}}); status != http.StatusBadRequest || !strings.Contains(page, "nobody") {
		t.Errorf("an unknown key: %d %s", status, page)
	}
}
