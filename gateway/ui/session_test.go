package ui_test

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/ui"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// pages are all pages without parameters.
var pages = []string{"/ui/", "/ui/cost", "/ui/resources", "/ui/requests", "/ui/dry-run", "/ui/approvals", "/ui/keys", "/ui/configuration", "/ui/configuration?view=file", "/ui/alerts", "/ui/limits", "/ui/policies", "/ui/policies?held=1", "/ui/playground", "/ui/legacy", "/ui/gateways", "/ui/exceptions"}

func TestLogin(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	p := c.visitor(t)
	status, header, _ := p.get(c.URL + "/ui/keys?org=acme")
	if want := "/ui/login?next=%2Fui%2Fkeys%3Forg%3Dacme"; status != http.StatusSeeOther || header.Get("Location") != want {
		t.Fatalf("a page before the login: %d to %q, want 303 to %q", status, header.Get("Location"), want)
	}
	if status, _, body := p.get(c.URL + header.Get("Location")); status != http.StatusOK || !strings.Contains(body, `value="/ui/keys?org=acme"`) || strings.Contains(body, "<nav") {
		t.Errorf("the login page: %d %s", status, body)
	}
	if status, _, body := p.post(c.URL+"/ui/login", url.Values{"token": {"token_nobody"}}); status != http.StatusUnauthorized || !strings.Contains(body, "An admin token is required") {
		t.Errorf("a wrong token: %d %s", status, body)
	}
	status, header, _ = p.post(c.URL+"/ui/login", url.Values{"token": {" token_vera\n"}, "next": {"/ui/keys?org=acme"}})
	cookie := header.Get("Set-Cookie")
	if status != http.StatusSeeOther || header.Get("Location") != "/ui/keys?org=acme" {
		t.Fatalf("the right token: %d to %q", status, header.Get("Location"))
	}
	if want := regexp.MustCompile(`^tollgate_session=[A-Z2-7]{52}; Path=/ui; Max-Age=28800; HttpOnly; SameSite=Lax$`); !want.MatchString(cookie) {
		t.Errorf("cookie %q, want %s", cookie, want)
	}
	if status, _, body := p.get(c.URL + "/ui/keys?org=acme"); status != http.StatusOK || !strings.Contains(body, "vera") || !strings.Contains(body, "ann") {
		t.Errorf("a page after the login: %d %s", status, body)
	}
	if status, header, _ = p.post(c.URL+"/ui/logout", nil); status != http.StatusSeeOther || header.Get("Location") != "/ui/login" || !strings.Contains(header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("logout: %d %v", status, header)
	}
	if status, _, _ := p.get(c.URL + "/ui/"); status != http.StatusSeeOther {
		t.Errorf("a page after the logout: %d, want 303", status)
	}
}

// A login leads to a page of the console and nowhere else.
func TestLoginLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	for _, next := range []string{
		"https://evil.example/ui/", "//evil.example/ui/", "/admin/status", `/\evil.example`, `/ui/\..`, "/ui/login", "javascript:alert(1)", "/uix", "",
		"/ui/../admin/status", "/ui/./../admin/status", "/ui/%2e%2e/admin/status", "/ui/%2E%2E%2Fadmin/status", "/ui/..%2fadmin", "/ui/..//evil.example", "/ui/%5cevil.example",
		"/ui/a/../login", "/ui/%6cogin/issuer", "/ui//login", "/ui/\t//evil.example", "/ui/%09//evil.example", "/ui/%0d%0aX:1", "/\t/evil.example", "/%2f/evil.example", "///evil.example",
		"\thttps://evil.example/ui/", "ui/", "?x", "//user@/ui/", "https:/ui/",
	} {
		_, header, _ := c.visitor(t).post(c.URL+"/ui/login", url.Values{"token": {"token_vera"}, "next": {next}})
		if header.Get("Location") != "/ui/" {
			t.Errorf("next %q leads to %q, want /ui/", next, header.Get("Location"))
		}
	}
}

// The address of a page that a login leads to is clean, so that the browser goes where the console has looked.
func TestLoginLeadsToCleanAddresses(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	for next, want := range map[string]string{
		"/ui/keys?org=acme&q=%2F%2Fx": "/ui/keys?org=acme&q=%2F%2Fx", "/ui//keys/": "/ui/keys", "/ui/a/../keys": "/ui/keys", "/ui/%6beys#x": "/ui/keys", "/ui/%252e%252e/x": "/ui/%252e%252e/x",
	} {
		if _, header, _ := c.visitor(t).post(c.URL+"/ui/login", url.Values{"token": {"token_vera"}, "next": {next}}); header.Get("Location") != want {
			t.Errorf("next %q leads to %q, want %s", next, header.Get("Location"), want)
		}
	}
}

// Over TLS, cookies have the prefix __Host-, and a cookie without it is no session. The consoles of one host have different cookies.
func TestCookiesOverTLS(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	c.Server = httptest.NewTLSServer(c.gateway.AdminHandler())
	t.Cleanup(c.Close)
	p := c.visitor(t)
	_, header, _ := p.post(c.URL+"/ui/login", url.Values{"token": {"token_vera"}})
	want := regexp.MustCompile(`^__Host-tollgate_session=([A-Z2-7]{52}); Path=/; Max-Age=28800; HttpOnly; Secure; SameSite=Lax$`)
	if !want.MatchString(header.Get("Set-Cookie")) {
		t.Fatalf("cookie %q, want %s", header.Get("Set-Cookie"), want)
	}
	if status, _, _ := p.get(c.URL + "/ui/keys"); status != http.StatusOK {
		t.Errorf("a page: %d, want 200", status)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.URL+"/ui/keys", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(&http.Cookie{Name: "tollgate_session", Value: want.FindStringSubmatch(header.Get("Set-Cookie"))[1]})
	if status, _, _ := c.visitor(t).do(r); status != http.StatusSeeOther {
		t.Errorf("a page with a cookie that any host can set: %d, want 303", status)
	}
	c.Server = httptest.NewTLSServer(c.gateway.Handler())
	t.Cleanup(c.Close)
	_, header, _ = c.visitor(t).post(c.URL+"/tollgate/ui/login", url.Values{"token": {"key_of_ann"}})
	if cookie := header.Get("Set-Cookie"); !strings.HasPrefix(cookie, "__Host-tollgate_team_session=") || !strings.Contains(cookie, "; Path=/; ") {
		t.Errorf("cookie of callers %q", cookie)
	}
}

// However often one key or token logs in, it ends its own oldest sessions alone.
func TestLoginsOfOneKeyKeepNobodyOut(t *testing.T) {
	t.Parallel()
	store := miniredis.RunT(t)
	c := start(t, text, store)
	team := &console{Server: httptest.NewServer(c.gateway.Handler())}
	t.Cleanup(team.Close)
	now := time.Now()
	store.SetTime(now)
	root, bob := c.as(t, "root"), team.caller(t, "bob")
	first, veras, anns := c.as(t, "vera"), []*person(nil), []*person(nil)
	for range ui.MaxOfHolder {
		now = now.Add(time.Millisecond) // sessions that begin in one millisecond have no order
		store.SetTime(now)
		veras, anns = append(veras, c.as(t, "vera")), append(anns, team.caller(t, "ann"))
	}
	if status, _, _ := first.get(c.URL + "/ui/"); status != http.StatusSeeOther {
		t.Errorf("the oldest session of vera: %d, want 303", status)
	}
	again := team.caller(t, "ann")
	if status, _, _ := anns[0].get(team.URL + "/tollgate/ui/"); status != http.StatusSeeOther {
		t.Errorf("the oldest session of ann: %d, want 303", status)
	}
	for name, p := range map[string]*person{"root": root, "vera's second": veras[0], "vera's last": veras[len(veras)-1]} {
		if status, _, _ := p.get(c.URL + "/ui/"); status != http.StatusOK {
			t.Errorf("the session of %s: %d, want 200", name, status)
		}
	}
	for name, p := range map[string]*person{"bob": bob, "ann's second": anns[1], "ann's last": again} {
		if status, _, _ := p.get(team.URL + "/tollgate/ui/"); status != http.StatusOK {
			t.Errorf("the session of %s: %d, want 200", name, status)
		}
	}
}

// All keys of an organisation together end sessions of that organisation alone. A session that has ended leaves room.
func TestSessionsOfOneOrganisationAreBounded(t *testing.T) {
	redistest.Each(t, func(t *testing.T, r redistest.Redis) {
		sessions, operators := ui.NewSessions(r.Client, "t:", "team"), ui.NewSessions(r.Client, "t:", "console")
		begin := func(of *ui.Sessions, org, holder string) string {
			value, err := of.BeginAs(t.Context(), org, holder)
			if err != nil {
				t.Fatal(err)
			}
			return value
		}
		other, operator, bound := begin(sessions, "globex", "key0"), begin(operators, "", "key0"), begin(operators, "acme", "key0")
		var values []string
		for i := range ui.MaxOfOrg {
			values = append(values, begin(sessions, "acme", fmt.Sprint("key", i/ui.MaxOfHolder)))
		}
		gone := func() (out []int) {
			for i, value := range values {
				if !sessions.Lives(t.Context(), value) {
					out = append(out, i)
				}
			}
			return out
		}
		if got := gone(); len(got) > 0 {
			t.Errorf("sessions %v ended before the organisation had as many as it may", got)
		}
		if err := sessions.End(t.Context(), values[500]); err != nil {
			t.Fatal(err)
		}
		begin(sessions, "acme", "late")
		if got := gone(); !slices.Equal(got, []int{500}) {
			t.Errorf("sessions %v ended although another had made room", got)
		}
		begin(sessions, "acme", "late")
		if got := gone(); len(got) != 2 || got[0] > 50 { // the oldest, or one of the same millisecond
			t.Errorf("sessions %v ended, want the oldest besides 500", got)
		}
		if !sessions.Lives(t.Context(), other) || !operators.Lives(t.Context(), operator) || !operators.Lives(t.Context(), bound) {
			t.Error("sessions of one organisation ended those of others")
		}
	})
}

// A new login in a browser ends the session that the browser had, everywhere.
func TestALoginEndsTheSessionBefore(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	p := c.as(t, "root")
	at, err := url.Parse(c.URL + "/ui/")
	if err != nil {
		t.Fatal(err)
	}
	before := p.http.Jar.Cookies(at)
	if status, _, _ := p.post(c.URL+"/ui/login", url.Values{"token": {"token_wrong"}}); status != http.StatusUnauthorized {
		t.Fatalf("a wrong token: %d, want 401", status)
	}
	if status, _, _ := p.get(c.URL + "/ui/"); status != http.StatusOK {
		t.Errorf("after a wrong token: %d, want 200", status)
	}
	if status, _, _ := p.post(c.URL+"/ui/login", url.Values{"token": {"token_vera"}}); status != http.StatusSeeOther {
		t.Fatalf("another login: %d", status)
	}
	stolen := c.visitor(t)
	stolen.http.Jar.SetCookies(at, before)
	if status, _, _ := stolen.get(c.URL + "/ui/"); status != http.StatusSeeOther {
		t.Errorf("the session before: %d, want 303", status)
	}
	if status, _, body := p.get(c.URL + "/ui/"); status != http.StatusOK || !strings.Contains(body, "vera") {
		t.Errorf("the session now: %d, want 200", status)
	}
}

// Wrong tokens are slowed as those at the API are.
func TestGuessedTokensAreSlowed(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	p := c.visitor(t)
	for range 1000 {
		status, header, _ := p.post(c.URL+"/ui/login", url.Values{"token": {"guess"}})
		if status == http.StatusTooManyRequests {
			if header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			c.as(t, "vera") // the right one passes
			return
		}
	}
	t.Error("a thousand wrong tokens were not slowed")
}

// A session is valid at every gateway, and so is its end.
func TestSessionsHoldAtEveryGateway(t *testing.T) {
	t.Parallel()
	store := miniredis.RunT(t)
	one, other := start(t, text, store), start(t, text, store)
	p := one.as(t, "vera") // cookies do not tell ports apart
	if status, _, _ := p.get(other.URL + "/ui/"); status != http.StatusOK {
		t.Errorf("the other gateway: %d, want 200", status)
	}
	stolen := *p.http
	stolen.Jar, _ = cookiejar.New(nil)
	at, err := url.Parse(one.URL + "/ui/")
	if err != nil {
		t.Fatal(err)
	}
	stolen.Jar.SetCookies(at, p.http.Jar.Cookies(at))
	copied := &person{t, &stolen}
	if status, _, _ := copied.get(one.URL + "/ui/"); status != http.StatusOK {
		t.Fatalf("a copy of the cookie: %d, want 200", status)
	}
	p.post(other.URL+"/ui/logout", nil)
	if status, _, _ := copied.get(one.URL + "/ui/"); status != http.StatusSeeOther {
		t.Errorf("a copy of the cookie after the logout: %d, want 303", status)
	}
	p = one.as(t, "vera")
	store.FastForward(8*time.Hour + time.Second)
	if status, _, _ := p.get(one.URL + "/ui/"); status != http.StatusSeeOther {
		t.Errorf("after eight hours: %d, want 303", status)
	}
}

// A session has the rights of its token at each request, and none after the token is taken away.
func TestSessionsEndWithTheirTokens(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	p := c.as(t, "root")
	form := url.Values{"org": {"acme"}, "confirmed": {"yes"}}
	if status, _, body := p.post(c.URL+"/ui/limits/reset", form); status != http.StatusSeeOther {
		t.Fatalf("an admin: %d %s", status, body)
	}
	if err := c.gateway.Swap(c.config(t, strings.Replace(c.text, "roles: [admin]", "roles: [viewer]", 1))); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := p.post(c.URL+"/ui/limits/reset", form); status != http.StatusForbidden {
		t.Errorf("a viewer by now: %d, want 403", status)
	}
	if err := c.gateway.Swap(c.config(t, strings.Replace(c.text, "token_root", "token_other", 1))); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := p.get(c.URL + "/ui/"); status != http.StatusSeeOther {
		t.Errorf("without a token: %d, want 303", status)
	}
}

// The stored session lets nobody in, and yields no token.
func TestTheStoreHasNoSecrets(t *testing.T) {
	t.Parallel()
	store := miniredis.RunT(t)
	c := start(t, text, store)
	p := c.as(t, "vera")
	at, err := url.Parse(c.URL + "/ui/")
	if err != nil {
		t.Fatal(err)
	}
	secrets := []string{"token_vera", p.http.Jar.Cookies(at)[0].Value}
	if dump := store.Dump(); !strings.Contains(dump, "keys:sessions:") || strings.Contains(dump, secrets[0]) || strings.Contains(dump, secrets[1]) {
		t.Errorf("the store has %s", dump)
	}
	value := p.http.Jar.Cookies(at)[0].Value
	_, _, body := p.get(c.URL + "/ui/keys")
	if strings.Contains(body, value) {
		t.Error("a page shows the value of the cookie")
	}
}

func TestTheStoreIsAway(t *testing.T) {
	t.Parallel()
	store := miniredis.RunT(t)
	c := start(t, text, store)
	p := c.as(t, "vera")
	store.SetError("away")
	defer store.SetError("")
	if status, _, body := p.get(c.URL + "/ui/"); status != http.StatusServiceUnavailable || !strings.Contains(body, "shared store unavailable") {
		t.Errorf("a page: %d %s", status, body)
	}
	if status, _, _ := c.visitor(t).post(c.URL+"/ui/login", url.Values{"token": {"token_vera"}}); status != http.StatusServiceUnavailable {
		t.Errorf("login: %d, want 503", status)
	}
}

// No route of the API reads the cookie, on either listener.
func TestNoRouteOfTheAPIReadsTheCookie(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	p := c.as(t, "root")
	at, err := url.Parse(c.URL + "/ui/")
	if err != nil {
		t.Fatal(err)
	}
	cookie := p.http.Jar.Cookies(at)[0]
	asked := 0
	for _, r := range gateway.AdminRows() {
		if r.Role == adminapi.Anyone {
			continue
		}
		asked++
		req := httptest.NewRequest(r.Method(), c.URL+strings.Replace(r.Path(), "{id}", "x", 1)+"?org=acme", http.NoBody)
		req.AddCookie(cookie)
		w := httptest.NewRecorder()
		c.gateway.AdminHandler().ServeHTTP(w, req)
		if w.Code != http.StatusUnauthorized {
			t.Errorf("%s with the cookie: %d, want 401", r.Pattern, w.Code)
		}
	}
	if asked < 30 {
		t.Errorf("%d routes were asked", asked)
	}
	req := httptest.NewRequest(http.MethodGet, "/v2/pods", http.NoBody)
	req.AddCookie(cookie)
	w := httptest.NewRecorder()
	c.gateway.Handler().ServeHTTP(w, req)
	if w.Code != http.StatusUnauthorized {
		t.Errorf("the data listener with the cookie: %d, want 401", w.Code)
	}
}
