package ui_test

import (
	"context"
	"html"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/tollgate-dev/tollgate/gateway/selfservice"
	"github.com/tollgate-dev/tollgate/test/issuer"
)

// teamText is a configuration with a lead who may approve, a member of its team, and one of another.
const teamText = `
platform: {base_url: "PLATFORM"}
redis: {embedded: true}
admin: {admins: [{name: root, sha256: SHA256(token_root), roles: [admin]}]}
orgs:
  - id: acme
    credential: {env: KEY}
    teams: [{id: research, budget: {per_hour: 5}, grants: {per_hour: 4}}, {id: ml}]
    policies: [{policy: gpu_count, approvable: true, params: {max_per_pod: 2}}]
    keys:
      - {id: lena, team: research, owner: lena@acme.example, roles: [operator, lead], sha256: SHA256(key_of_lena), limits: {minute: 600}}
      - {id: ann, team: research, owner: ann@acme.example, sha256: SHA256(key_of_ann)}
      - {id: mel, team: ml, sha256: SHA256(key_of_mel)}
`

// teamPages are all pages of callers without parameters.
var teamPages = []string{"/tollgate/ui/", "/tollgate/ui/cost", "/tollgate/ui/resources", "/tollgate/ui/requests", "/tollgate/ui/approvals", "/tollgate/ui/keys"}

// startTeam runs a gateway, and serves its data listener.
func startTeam(t *testing.T, text string, store *miniredis.Miniredis) *console {
	t.Helper()
	c := start(t, text, store)
	c.Server = httptest.NewServer(c.gateway.Handler())
	t.Cleanup(c.Close)
	return c
}

// caller returns a person with a session of a key.
func (c *console) caller(t *testing.T, name string) *person {
	t.Helper()
	p := c.visitor(t)
	if status, _, body := p.post(c.URL+"/tollgate/ui/login", url.Values{"token": {"key_of_" + name}}); status != http.StatusSeeOther {
		t.Fatalf("login as %s: %d %s", name, status, body)
	}
	return p
}

// call makes a call of the API with a key.
func (c *console) call(t *testing.T, method, path, key, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, c.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	status, _, answer := c.visitor(t).do(r)
	return status, answer
}

const threeGPUs = `{"name":"big","image":"img:1","gpu":{"id":"NVIDIA L4","count":3}}`

func TestCallersLogIn(t *testing.T) {
	t.Parallel()
	c := startTeam(t, teamText, miniredis.RunT(t))
	p := c.visitor(t)
	if status, header, _ := p.get(c.URL + "/tollgate/ui/cost?by=key"); status != http.StatusSeeOther || header.Get("Location") != "/tollgate/ui/login?next=%2Ftollgate%2Fui%2Fcost%3Fby%3Dkey" {
		t.Errorf("a page before the login: %d to %q", status, header.Get("Location"))
	}
	if status, _, body := p.post(c.URL+"/tollgate/ui/login", url.Values{"token": {"token_root"}}); status != http.StatusUnauthorized {
		t.Errorf("the token of an admin: %d %s", status, body)
	}
	status, header, body := p.post(c.URL+"/tollgate/ui/login", url.Values{"token": {" key_of_ann\n"}, "next": {"/tollgate/ui/cost?by=key"}})
	if status != http.StatusSeeOther || header.Get("Location") != "/tollgate/ui/cost?by=key" {
		t.Fatalf("a key: %d to %q: %s", status, header.Get("Location"), body)
	}
	if want := regexp.MustCompile(`^tollgate_session=[A-Z2-7]{52}; Path=/tollgate; Max-Age=28800; HttpOnly; SameSite=Lax$`); !want.MatchString(header.Get("Set-Cookie")) {
		t.Errorf("cookie %q, want %s", header.Get("Set-Cookie"), want)
	}
	for _, page := range teamPages {
		status, header, body := p.get(c.URL + page)
		want := http.StatusOK
		if strings.HasSuffix(page, "/keys") {
			want = http.StatusForbidden
		}
		if status != want || header.Get("Cache-Control") != "no-store" || inline.MatchString(body) {
			t.Errorf("%s: %d, want %d, with %v: %s", page, status, want, header, body)
		}
		if want == http.StatusForbidden && strings.Contains(body, `class="empty"`) {
			t.Errorf("%s shows the empty state of a list that it could not read: %s", page, body)
		}
		if strings.Contains(body, `<li><a href="/tollgate/ui/keys"`) {
			t.Errorf("%s offers a member the keys of its team", page)
		}
	}
	if status, header, _ := p.post(c.URL+"/tollgate/ui/logout", nil); status != http.StatusSeeOther || header.Get("Location") != "/tollgate/ui/login" {
		t.Errorf("logout: %d to %q", status, header.Get("Location"))
	}
	if status, _, _ := p.get(c.URL + "/tollgate/ui/"); status != http.StatusSeeOther {
		t.Errorf("a page after the logout: %d, want 303", status)
	}
}

// The first page of a key with a small rate limit shows the parts that the limit permits, and says why the others are missing.
func TestMyTeamWithinASmallLimit(t *testing.T) {
	t.Parallel()
	store := miniredis.RunT(t)
	store.SetTime(time.Now()) // the minute does not end
	c := startTeam(t, strings.Replace(teamText, "sha256: SHA256(key_of_ann)", "sha256: SHA256(key_of_ann), limits: {minute: 3}", 1), store)
	p := c.caller(t, "ann")
	status, _, page := p.get(c.URL + "/tollgate/ui/")
	if n := strings.Count(page, "Unknown: "); status != http.StatusOK || n != 2 || !strings.Contains(page, "not all data could be read") || !strings.Contains(page, "Rate limits") || !strings.Contains(page, "research") {
		t.Errorf("with one of three requests left for the parts: %d with %d missing parts: %s", status, n, page)
	}
	status, _, page = p.get(c.URL + "/tollgate/ui/")
	if n := strings.Count(page, ">Unavailable<"); status != http.StatusTooManyRequests || n != 5 || strings.Contains(page, "not limited") || strings.Contains(page, "No budget") {
		t.Errorf("with no request left: %d with %d unavailable panels, want 5: %s", status, n, page)
	}
}

// The requests of a caller are listed on pages.
func TestPagesOfOwnRequests(t *testing.T) {
	t.Parallel()
	c := startTeam(t, teamText, miniredis.RunT(t))
	for range 5 {
		c.call(t, http.MethodPost, "/v2/pods", "key_of_ann", threeGPUs)
	}
	p, found := c.caller(t, "ann"), map[string]bool{}
	for pages, path := 0, "/tollgate/ui/requests?limit=2"; path != ""; pages++ {
		status, _, page := p.get(c.URL + path)
		if status != http.StatusOK || pages > 3 {
			t.Fatalf("page %d, %s: %d %s", pages, path, status, page)
		}
		for _, id := range regexp.MustCompile(`/ui/requests/(\w{26})`).FindAllStringSubmatch(page, -1) {
			found[id[1]] = true
		}
		path = ""
		if next := regexp.MustCompile(`href="([^"]*)">Next<`).FindStringSubmatch(page); next != nil {
			path = html.UnescapeString(next[1])
		}
	}
	if len(found) != 5 {
		t.Errorf("%d requests on all pages, want 5", len(found))
	}
}

// A lead sees its team alone, and answers a request as an operator lets it; the call passes then, and the log names the lead.
func TestLeadsGrantOnTheirPages(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	c := startTeam(t, teamText+"audit: {file: {path: "+file+"}}\n", miniredis.RunT(t))
	for _, key := range []string{"key_of_ann", "key_of_mel"} {
		if status, answer := c.call(t, http.MethodPost, "/v2/pods", key, threeGPUs); status != http.StatusForbidden {
			t.Fatalf("three GPUs of %s: %d %s", key, status, answer)
		}
	}
	operators := &console{gateway: c.gateway, text: c.text}
	operators.serve(t)
	operator := operators.as(t, "root")
	waiting := func(want string) {
		t.Helper()
		if _, _, body := operator.get(operators.URL + "/ui/?org=acme"); strings.Contains(body, `<strong class="badge">`) != (want != "") || !strings.Contains(body, want) {
			t.Errorf("the first page has no %q: %s", want, body)
		}
	}
	waiting(`Approvals</span><strong class="badge">2<span class="away"> pending</span></strong>`)
	waiting("Requested by ann, team research")
	waiting(`">3 × NVIDIA L4</a>`)
	lead := c.caller(t, "lena")
	_, _, body := lead.get(c.URL + "/tollgate/ui/approvals")
	ids := regexp.MustCompile(`name="id" value="(ap-[A-Z0-9]+)"`).FindAllStringSubmatch(body, -1)
	if len(ids) != 2 || ids[0][1] != ids[1][1] || strings.Contains(body, "mel") { // granted or denied
		t.Fatalf("the requests that a lead may answer: %v: %s", ids, body)
	}
	form := url.Values{"id": {ids[0][1]}, "for": {"1h"}, "reason": {"the demo"}, "back": {"/tollgate/ui/approvals"}}
	if status, _, body := c.caller(t, "ann").post(c.URL+"/tollgate/ui/approvals/grant", form); status != http.StatusForbidden {
		t.Errorf("a grant of one's own: %d %s", status, body)
	}
	if status, _, body := lead.post(c.URL+"/tollgate/ui/approvals/grant", url.Values{"id": {ids[0][1]}, "max_usd": {"9"}}); status != http.StatusForbidden || !strings.Contains(body, "at most 4") {
		t.Errorf("more than an operator lets a lead grant: %d %s", status, body)
	}
	status, header, body := lead.post(c.URL+"/tollgate/ui/approvals/grant", form)
	if status != http.StatusSeeOther || header.Get("Location") != "/tollgate/ui/approvals" {
		t.Fatalf("grant: %d to %q: %s", status, header.Get("Location"), body)
	}
	if _, _, body := lead.get(c.URL + header.Get("Location")); !strings.Contains(body, "Answered by lena") || !strings.Contains(body, "can send the request once until ") {
		t.Errorf("the page after the grant: %s", body)
	}
	if status, answer := c.call(t, http.MethodPost, "/v2/pods", "key_of_ann", threeGPUs); status != http.StatusCreated {
		t.Errorf("the granted call: %d %s", status, answer)
	}
	lines, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(lines), `"operation":"self.approvals.grant"`) || !strings.Contains(string(lines), `"key":"lena"`) {
		t.Errorf("the audit log: %s, %v", lines, err)
	}
}

// A lead makes a key, gives it another secret, and revokes it.
func TestLeadsManageKeysOnTheirPages(t *testing.T) {
	t.Parallel()
	c := startTeam(t, teamText, miniredis.RunT(t))
	lead := c.caller(t, "lena")
	secret := regexp.MustCompile(`value="(tg_[A-Z0-9]+)"`)
	status, _, body := lead.post(c.URL+"/tollgate/ui/keys/create", url.Values{"id": {"batch"}, "roles": {"viewer"}, "limit.minute": {"9"}})
	made := secret.FindStringSubmatch(body)
	if status != http.StatusOK || made == nil || !strings.Contains(body, `href="/tollgate/ui/keys"`) {
		t.Fatalf("make: %d %s", status, body)
	}
	if status, answer := c.call(t, http.MethodGet, "/tollgate/me", made[1], ""); status != http.StatusOK || !strings.Contains(answer, `"team":"research"`) {
		t.Errorf("the key that was made: %d %s", status, answer)
	}
	holder := c.visitor(t)
	holder.post(c.URL+"/tollgate/ui/login", url.Values{"token": {made[1]}})
	if status, _, _ := holder.get(c.URL + "/tollgate/ui/"); status != http.StatusOK {
		t.Errorf("the page of its holder: %d", status)
	}
	if status, _, body := lead.post(c.URL+"/tollgate/ui/keys/rotate", url.Values{"id": {"batch"}, "overlap": {"1h"}, "confirmed": {"yes"}}); status != http.StatusOK || secret.FindStringSubmatch(body) == nil {
		t.Errorf("rotate: %d %s", status, body)
	}
	if status, header, body := lead.post(c.URL+"/tollgate/ui/keys/revoke", url.Values{"id": {"batch"}, "back": {"/tollgate/ui/keys"}, "confirmed": {"yes"}}); status != http.StatusSeeOther || header.Get("Location") != "/tollgate/ui/keys" {
		t.Errorf("revoke: %d to %q: %s", status, header.Get("Location"), body)
	}
	// A session ends with its key.
	if status, header, _ := holder.get(c.URL + "/tollgate/ui/"); status != http.StatusSeeOther || !strings.HasPrefix(header.Get("Location"), "/tollgate/ui/login") {
		t.Errorf("the page of a revoked key: %d to %q, want 303 to the login", status, header.Get("Location"))
	}
	if status, _, body := lead.post(c.URL+"/tollgate/ui/keys/create", url.Values{"id": {"x"}, "roles": {"admin"}}); status != http.StatusForbidden || !strings.Contains(body, "a lead cannot assign the role admin") {
		t.Errorf("a key of more rights: %d %s", status, body)
	}
}

// No route of the API reads the cookie of a caller, and no console that of the other.
func TestNoRouteOfCallersReadsTheCookie(t *testing.T) {
	t.Parallel()
	store := miniredis.RunT(t)
	c := startTeam(t, teamText, store)
	at, err := url.Parse(c.URL + "/tollgate/ui/")
	if err != nil {
		t.Fatal(err)
	}
	cookie := c.caller(t, "lena").http.Jar.Cookies(at)[0]
	ask := func(h http.Handler, method, path string) int {
		r := httptest.NewRequest(method, path, http.NoBody)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1})))
		r.AddCookie(cookie)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	if status := ask(c.gateway.Handler(), http.MethodGet, "/tollgate/ui/"); status != http.StatusOK {
		t.Fatalf("the first page with the cookie: %d, want 200", status)
	}
	asked := 0
	for _, r := range (*selfservice.Service)(nil).Routes() {
		asked++
		if status := ask(c.gateway.Handler(), r.Method, strings.Replace(r.Pattern, "{id}", "x", 1)); status != http.StatusUnauthorized {
			t.Errorf("%s %s with the cookie: %d, want 401", r.Method, r.Pattern, status)
		}
	}
	for _, path := range []string{"/v2/pods", "/v1/pods", "/v2/id/health", "/tollgate/keys"} {
		if status := ask(c.gateway.Handler(), http.MethodGet, path); status != http.StatusUnauthorized {
			t.Errorf("%s with the cookie: %d, want 401", path, status)
		}
	}
	if status := ask(c.gateway.AdminHandler(), http.MethodGet, "/ui/"); status != http.StatusSeeOther || asked < 8 {
		t.Errorf("the console of operators with the cookie: %d, want 303; %d routes were asked", status, asked)
	}
	// A key beside the cookie is the only credential.
	r := httptest.NewRequest(http.MethodGet, "/tollgate/me", http.NoBody)
	r.AddCookie(cookie)
	r.Header.Set("Authorization", "Bearer key_of_mel")
	w := httptest.NewRecorder()
	c.gateway.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"key":"mel"`) {
		t.Errorf("a key beside the cookie: %d %s", w.Code, w.Body)
	}
}

func TestPagesOfCallersBeyondLoopback(t *testing.T) {
	t.Parallel()
	c := startTeam(t, teamText+"balancers: {addresses: [10.0.0.0/24], forwarded_hops: 1}\n", miniredis.RunT(t))
	for _, from := range []struct {
		local, remote string
		want          int
	}{
		{"192.0.2.1:8080", "198.51.100.7:999", http.StatusForbidden},
		{"192.0.2.1:8080", "10.0.0.9:999", http.StatusOK},
		{"127.0.0.1:8080", "127.0.0.1:999", http.StatusOK},
	} {
		local, err := net.ResolveTCPAddr("tcp", from.local)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodGet, "/tollgate/ui/login", http.NoBody)
		r.RemoteAddr = from.remote
		w := httptest.NewRecorder()
		c.gateway.Handler().ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(local))))
		if w.Code != from.want {
			t.Errorf("at %s from %s: %d, want %d", from.local, from.remote, w.Code, from.want)
		}
	}
	secure := httptest.NewTLSServer(c.gateway.Handler())
	t.Cleanup(secure.Close)
	c.Server = secure
	_, header, _ := c.visitor(t).post(secure.URL+"/tollgate/ui/login", url.Values{"token": {"key_of_ann"}})
	if !strings.Contains(header.Get("Set-Cookie"), "; Secure") {
		t.Errorf("cookie over TLS %q, want Secure", header.Get("Set-Cookie"))
	}
}

// The host name of a load-balanced endpoint has none of the gateway's pages: all of its paths are the endpoint's.
func TestEndpointsHaveTheirOwnPages(t *testing.T) {
	t.Parallel()
	c := startTeam(t, strings.Replace(teamText, `"PLATFORM"`, `"PLATFORM", run_url: "PLATFORM", lb_url: "http://{id}.localhost:1"`, 1)+"public_lb_url: http://{id}.lb.example\n", miniredis.RunT(t))
	for host, want := range map[string]int{"tollgate.example": http.StatusOK, "e1.lb.example": http.StatusUnauthorized} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.URL+"/tollgate/ui/login", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		if status, _, body := c.visitor(t).do(r); status != want {
			t.Errorf("%s: %d, want %d: %s", host, status, want, body)
		}
	}
}

func TestFormsOfOtherSitesToCallers(t *testing.T) {
	t.Parallel()
	c := startTeam(t, teamText, miniredis.RunT(t))
	p := c.caller(t, "lena")
	for _, path := range []string{"login", "logout", "keys/create", "approvals/grant", "resources/snooze"} {
		if status, _, _ := p.post(c.URL+"/tollgate/ui/"+path, url.Values{"id": {"x"}}, "Sec-Fetch-Site", "cross-site"); status != http.StatusForbidden {
			t.Errorf("%s from another site: %d, want 403", path, status)
		}
	}
	if status, _, _ := p.get(c.URL + "/tollgate/ui/"); status != http.StatusOK {
		t.Errorf("the session: %d, want 200", status)
	}
}

func TestThePagesOfCallersCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	c := startTeam(t, "console: false\n"+teamText, miniredis.RunT(t))
	if status, _, _ := c.visitor(t).get(c.URL + "/tollgate/ui/login"); status == http.StatusOK {
		t.Errorf("the login page: %d", status)
	}
}

// A session of a caller is valid at every gateway, and so is its end.
func TestSessionsOfCallersHoldAtEveryGateway(t *testing.T) {
	t.Parallel()
	store := miniredis.RunT(t)
	one, other := startTeam(t, teamText, store), startTeam(t, teamText, store)
	p := one.caller(t, "ann") // cookies do not tell ports apart
	if status, _, _ := p.get(other.URL + "/tollgate/ui/"); status != http.StatusOK {
		t.Errorf("the other gateway: %d, want 200", status)
	}
	at, err := url.Parse(one.URL + "/tollgate/ui/")
	if err != nil {
		t.Fatal(err)
	}
	copied := one.visitor(t)
	copied.http.Jar.SetCookies(at, p.http.Jar.Cookies(at))
	if status, _, _ := copied.get(one.URL + "/tollgate/ui/"); status != http.StatusOK {
		t.Fatalf("a copy of the cookie: %d, want 200", status)
	}
	p.post(other.URL+"/tollgate/ui/logout", nil)
	if status, _, _ := copied.get(one.URL + "/tollgate/ui/"); status != http.StatusSeeOther {
		t.Errorf("a copy of the cookie after the logout: %d, want 303", status)
	}
	p = one.caller(t, "ann")
	store.FastForward(8*time.Hour + time.Second)
	if status, _, _ := p.get(one.URL + "/tollgate/ui/"); status != http.StatusSeeOther {
		t.Errorf("after eight hours: %d, want 303", status)
	}
	if strings.Contains(store.Dump(), "key_of_ann") {
		t.Error("the store has a key")
	}
}

// A caller logs in at an issuer. The session outlasts the token, and ends when that is revoked.
func TestCallersLogInAtAnIssuer(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	c := startTeam(t, teamText+`issuers: [{id: corp, url: "`+d.URL+`", audiences: [console], orgs: [acme], team: research, role: operator, login: {client_id: console, scopes: [groups]}}]`+"\n", miniredis.RunT(t))
	p := c.visitor(t)
	if _, _, body := p.get(c.URL + "/tollgate/ui/login"); !strings.Contains(body, "Sign in with corp") {
		t.Errorf("the login page: %s", body)
	}
	_, header, _ := p.get(c.URL + "/tollgate/ui/login/issuer?issuer=corp&next=%2Ftollgate%2Fui%2Fcost")
	status, header, body := p.get(d.follow(header.Get("Location")))
	if status != http.StatusSeeOther || header.Get("Location") != "/tollgate/ui/cost" || d.asked.Get("redirect_uri") != c.URL+"/tollgate/ui/login/callback" {
		t.Fatalf("the way back: %d to %q: %s", status, header.Get("Location"), body)
	}
	c.ahead.Store(int64(time.Hour))
	if status, _, body := p.get(c.URL + "/tollgate/ui/"); status != http.StatusOK || !strings.Contains(body, "ada") || !strings.Contains(body, "research") {
		t.Errorf("an hour after the login: %d %s", status, body)
	}
	now := time.Now()
	token := d.Token(t, issuer.Claims{"sub": "ada", "aud": "console", "iat": now.Unix(), "exp": now.Add(time.Minute).Unix()})
	if status, answer := c.call(t, http.MethodGet, "/tollgate/me", token, ""); status != http.StatusUnauthorized {
		t.Errorf("an expired token at the API: %d %s", status, answer)
	}
	operators := &console{gateway: c.gateway, text: c.text}
	operators.Server = httptest.NewServer(c.gateway.AdminHandler())
	t.Cleanup(operators.Close)
	if status, _, body := operators.as(t, "root").post(operators.URL+"/ui/tokens/revoke", url.Values{"issuer": {"corp"}, "subject": {"ada"}}); status != http.StatusSeeOther {
		t.Fatalf("revoke: %d %s", status, body)
	}
	if status, _, _ := p.get(c.URL + "/tollgate/ui/"); status != http.StatusSeeOther {
		t.Errorf("a revoked subject: %d, want 303", status)
	}
}
