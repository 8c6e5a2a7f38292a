package ui_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/test/issuer"
)

// directory is an issuer where people log in, who all are ada. It redirects at once, as one that knows the browser does.
type directory struct {
	*issuer.Issuer

	t *testing.T
	// claims are added to those of ID tokens.
	claims issuer.Claims
	// challenge and nonce are those of the login that is under way.
	challenge, nonce string
	// asked is the form that the code was exchanged with, exchanges counts the requests that did so, and styles has their ways to show the secret.
	asked     url.Values
	exchanges int
	styles    map[string]bool
	// methods are those of token_endpoint_auth_methods_supported.
	methods []string
}

func newDirectory(t *testing.T) *directory {
	t.Helper()
	d := &directory{Issuer: issuer.RunT(t), t: t, styles: make(map[string]bool)}
	d.Handle("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer": d.URL, "jwks_uri": d.URL + "/jwks", "authorization_endpoint": d.URL + "/authorize", "token_endpoint": d.URL + "/token",
			"token_endpoint_auth_methods_supported": d.methods,
		})
	})
	d.Handle("/token", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		d.asked = r.PostForm
		d.exchanges++
		if _, _, basic := r.BasicAuth(); basic {
			d.styles["basic"] = true
		}
		if r.PostForm.Has("client_secret") {
			d.styles["post"] = true
		}
		w.Header().Set("Content-Type", "application/json")
		if r.PostForm.Get("code") != "the-code" || challengeOf(r.PostForm.Get("code_verifier")) != d.challenge {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":"invalid_grant"}`))
			return
		}
		now := time.Now()
		claims := issuer.Claims{"sub": "ada", "aud": "console", "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(), "groups": []string{"gpu-admins"}, "nonce": d.nonce}
		maps.Copy(claims, d.claims)
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "opaque", "token_type": "Bearer", "id_token": d.Token(t, claims)})
	})
	return d
}

// challengeOf is the challenge of a code verifier, RFC 7636, section 4.2.
func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// follow takes the address that the console sends a browser to, and returns the one that the issuer sends it back to.
func (d *directory) follow(location string) string {
	d.t.Helper()
	u, err := url.Parse(location)
	if err != nil {
		d.t.Fatal(err)
	}
	q := u.Query()
	if !strings.HasPrefix(location, d.URL+"/authorize?") || q.Get("response_type") != "code" || q.Get("client_id") != "console" || q.Get("code_challenge_method") != "S256" || q.Get("scope") != "openid groups" {
		d.t.Fatalf("the console sends the browser to %s", location)
	}
	d.challenge, d.nonce = q.Get("code_challenge"), q.Get("nonce")
	return q.Get("redirect_uri") + "?" + url.Values{"code": {"the-code"}, "state": {q.Get("state")}}.Encode()
}

// issued is the configuration of a console whose people log in at an issuer.
func issued(d *directory) string {
	return strings.Replace(text, "admin: {", `admin: {issuers: [{id: corp, url: "`+d.URL+`", audiences: [console], grants: {gpu-admins: admin}, login: {client_id: console, scopes: [groups]}}], `, 1)
}

const toIssuer = "/ui/login/issuer?issuer=corp&next=%2Fui%2Fkeys"

func TestLoginAtAnIssuer(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	c := start(t, issued(d), miniredis.RunT(t))
	p := c.visitor(t)
	if _, _, body := p.get(c.URL + "/ui/login?next=/ui/keys"); !strings.Contains(body, "Sign in with corp") {
		t.Errorf("the login page: %s", body)
	}
	_, header, _ := p.get(c.URL + toIssuer)
	if cookie := header.Get("Set-Cookie"); !strings.Contains(cookie, "; Path=/ui/login/callback; Max-Age=600; HttpOnly; SameSite=Lax") {
		t.Errorf("cookie %q", cookie)
	}
	back := d.follow(header.Get("Location"))
	status, header, body := p.get(back)
	if status != http.StatusSeeOther || header.Get("Location") != "/ui/keys" {
		t.Fatalf("the way back: %d to %q: %s", status, header.Get("Location"), body)
	}
	if _, _, body := p.get(c.URL + "/ui/keys"); !strings.Contains(body, "corp:ada") || !strings.Contains(body, "/ui/create-key") {
		t.Errorf("the page of corp:ada: %s", body)
	}
	if d.asked.Get("grant_type") != "authorization_code" || d.asked.Get("redirect_uri") != c.URL+"/ui/login/callback" {
		t.Errorf("the code was exchanged with %v", d.asked)
	}
	if status, _, _ := p.get(back); status != http.StatusBadRequest {
		t.Errorf("the way back once more: %d, want 400", status)
	}
	// A former admin has no session.
	if err := c.gateway.Swap(c.config(t, strings.Replace(c.text, "gpu-admins: admin", "others: admin", 1))); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := p.get(c.URL + "/ui/keys"); status != http.StatusForbidden {
		t.Errorf("without a role: %d, want 403", status)
	}
}

// A session of a login outlasts its token, which is for a minute, and ends when that is revoked. One of a pasted token ends with it.
func TestLoginsOutlastTheirTokens(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	c := start(t, issued(d), miniredis.RunT(t))
	p, pasting := c.visitor(t), c.visitor(t)
	_, header, _ := p.get(c.URL + toIssuer)
	if status, _, body := p.get(d.follow(header.Get("Location"))); status != http.StatusSeeOther {
		t.Fatalf("login: %d %s", status, body)
	}
	now := time.Now()
	token := d.Token(t, issuer.Claims{"sub": "bea", "aud": "console", "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(), "groups": []string{"gpu-admins"}})
	if status, _, body := pasting.post(c.URL+"/ui/login", url.Values{"token": {token}}); status != http.StatusSeeOther {
		t.Fatalf("a pasted token: %d %s", status, body)
	}
	c.ahead.Store(int64(time.Hour))
	if status, _, body := p.get(c.URL + "/ui/keys"); status != http.StatusOK {
		t.Errorf("an hour after the login: %d %s", status, body)
	}
	if status, _, _ := pasting.get(c.URL + "/ui/keys"); status != http.StatusSeeOther {
		t.Errorf("an hour after the token was pasted: %d, want 303", status)
	}
	if status, _, body := c.as(t, "root").post(c.URL+"/ui/tokens/revoke", url.Values{"issuer": {"corp"}, "subject": {"ada"}}); status != http.StatusSeeOther {
		t.Fatalf("revoke: %d %s", status, body)
	}
	if status, header, _ := p.get(c.URL + "/ui/keys"); status != http.StatusSeeOther || !strings.HasPrefix(header.Get("Location"), "/ui/login") {
		t.Errorf("a revoked subject: %d to %q, want 303 to the login", status, header.Get("Location"))
	}
}

func TestLoginsThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		claims issuer.Claims
		change func(back string) string
		down   bool
		want   int
	}{
		"another state":    {nil, func(back string) string { return strings.Replace(back, "state=", "state=x", 1) }, false, http.StatusBadRequest},
		"no state":         {nil, func(back string) string { return back[:strings.Index(back, "&state")] }, false, http.StatusBadRequest},
		"another code":     {nil, func(back string) string { return strings.Replace(back, "the-code", "another", 1) }, false, http.StatusForbidden},
		"an error":         {nil, func(back string) string { return back + "&error=access_denied" }, false, http.StatusForbidden},
		"another client":   {issuer.Claims{"azp": "others"}, nil, false, http.StatusForbidden},
		"a client list":    {issuer.Claims{"azp": []string{"console"}}, nil, false, http.StatusForbidden},
		"another issuer":   {nil, func(back string) string { return back + "&iss=https%3A%2F%2Fevil.example" }, false, http.StatusForbidden},
		"another nonce":    {issuer.Claims{"nonce": "another"}, nil, false, http.StatusForbidden},
		"another audience": {issuer.Claims{"aud": "others"}, nil, false, http.StatusUnauthorized},
		"no role":          {issuer.Claims{"groups": []string{"others"}}, nil, false, http.StatusForbidden},
		"expired":          {issuer.Claims{"exp": time.Now().Add(-time.Hour).Unix()}, nil, false, http.StatusUnauthorized},
		"an issuer away":   {nil, nil, true, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDirectory(t)
			d.claims = c.claims
			console := start(t, issued(d), miniredis.RunT(t))
			p := console.visitor(t)
			_, header, _ := p.get(console.URL + toIssuer)
			back := d.follow(header.Get("Location"))
			if c.change != nil {
				back = c.change(back)
			}
			if c.down {
				d.Handle("/.well-known/openid-configuration", nil)
				d.Down(true)
			}
			if status, header, body := p.get(back); status != c.want || strings.Contains(header.Get("Set-Cookie"), "tollgate_session") {
				t.Errorf("%d, want %d: %s", status, c.want, body)
			}
			if status, _, _ := p.get(console.URL + "/ui/"); status != http.StatusSeeOther {
				t.Errorf("a page: %d, want 303", status)
			}
		})
	}
	d := newDirectory(t)
	c := start(t, issued(d), miniredis.RunT(t))
	if status, _, _ := c.visitor(t).get(c.URL + "/ui/login/issuer?issuer=others"); status != http.StatusBadRequest {
		t.Errorf("an unknown issuer: %d, want 400", status)
	}
	// A login that another browser began, by a link that a person was sent.
	_, header, _ := c.visitor(t).get(c.URL + toIssuer)
	if status, _, _ := c.visitor(t).get(d.follow(header.Get("Location"))); status != http.StatusBadRequest {
		t.Errorf("a login of another browser: %d, want 400", status)
	}
	if identity.LoginState("a") == identity.LoginState("b") {
		t.Error("two logins have one state")
	}
}

// Requests without a login that was begun here make no call to the issuer, and are counted as wrong tokens; no number of logins makes more than
// one call for the discovery document.
func TestStrangersMakeNoCallsToTheIssuer(t *testing.T) {
	t.Parallel()
	for name, listener := range map[string]struct {
		path  string
		serve func(t *testing.T, d *directory) *console
	}{
		"operators": {"/ui", func(t *testing.T, d *directory) *console { t.Helper(); return start(t, issued(d), miniredis.RunT(t)) }},
		"callers": {"/tollgate/ui", func(t *testing.T, d *directory) *console {
			t.Helper()
			return startTeam(t, teamText+`issuers: [{id: corp, url: "`+d.URL+`", audiences: [console], orgs: [acme], team: research, role: operator, login: {client_id: console, scopes: [groups]}}]`+"\n", miniredis.RunT(t))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDirectory(t)
			c := listener.serve(t, d)
			before := d.Asked("/.well-known/openid-configuration")
			for range 30 {
				if status, _, body := c.visitor(t).get(c.URL + listener.path + "/login/issuer?issuer=corp"); status != http.StatusSeeOther {
					t.Fatalf("the beginning of a login: %d %s", status, body)
				}
			}
			if n := d.Asked("/.well-known/openid-configuration") - before; n > 1 {
				t.Errorf("30 logins asked for the discovery document %d times, want once", n)
			}
			// The state of a cookie that the console has not sealed follows from a proof of the stranger's own.
			forged, err := json.Marshal(map[string]any{"issuer": "corp", "proof": "mine", "next": "/ui/", "began": time.Now()})
			if err != nil {
				t.Fatal(err)
			}
			slowed := 0
			for range 100 {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.URL+listener.path+"/login/callback?code=guess&state="+identity.LoginState("mine"), http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				r.AddCookie(&http.Cookie{Name: "tollgate_login", Value: base64.RawURLEncoding.EncodeToString(forged)})
				switch status, header, body := c.visitor(t).do(r); {
				case status == http.StatusTooManyRequests && header.Get("Retry-After") != "":
					slowed++
				case status != http.StatusBadRequest:
					t.Fatalf("a forged cookie: %d %s, want 400 or 429", status, body)
				}
			}
			if d.exchanges != 0 || slowed < 50 {
				t.Errorf("forged logins made %d calls to the token endpoint, want none, and %d of 100 were slowed", d.exchanges, slowed)
			}
		})
	}
}

// A login that was begun here bounds the calls, too: a code that the issuer refuses counts as a wrong token, and one that it accepts does not.
func TestRefusedCodesAreCounted(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	c := start(t, issued(d), miniredis.RunT(t))
	for range 40 { // twice the burst
		p := c.visitor(t)
		_, header, _ := p.get(c.URL + toIssuer)
		if status, _, body := p.get(d.follow(header.Get("Location"))); status != http.StatusSeeOther {
			t.Fatalf("login: %d %s", status, body)
		}
	}
	p := c.visitor(t)
	_, header, _ := p.get(c.URL + toIssuer)
	back := strings.Replace(d.follow(header.Get("Location")), "the-code", "another", 1)
	at, err := url.Parse(c.URL + "/ui/login/callback")
	if err != nil {
		t.Fatal(err)
	}
	cookies, before := p.http.Jar.Cookies(at), d.exchanges
	last := 0
	for range 100 {
		p.http.Jar.SetCookies(at, cookies) // the console deletes it
		last, _, _ = p.get(back)
	}
	if n := d.exchanges - before; n > 25 || last != http.StatusTooManyRequests {
		t.Errorf("100 wrong codes made %d calls to the issuer and ended with %d, want at most 25 calls and 429", n, last)
	}
}

// The client shows its secret in one style, by one request.
func TestTheSecretIsShownInOneStyle(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		methods []string
		want    string
	}{
		"nothing said": {nil, "basic"}, "both": {[]string{"client_secret_post", "client_secret_basic"}, "basic"}, "post": {[]string{"client_secret_post"}, "post"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDirectory(t)
			d.methods = tt.methods
			c := start(t, strings.Replace(issued(d), "client_id: console,", "client_id: console, client_secret: {env: KEY},", 1), miniredis.RunT(t))
			p := c.visitor(t)
			_, header, _ := p.get(c.URL + toIssuer)
			back := strings.Replace(d.follow(header.Get("Location")), "the-code", "another", 1)
			if status, _, body := p.get(back); status != http.StatusForbidden {
				t.Errorf("a wrong code: %d %s", status, body)
			}
			if len(d.styles) != 1 || !d.styles[tt.want] || d.exchanges != 1 {
				t.Errorf("the secret was shown by %v in %d requests, want by %s in one", d.styles, d.exchanges, tt.want)
			}
		})
	}
}

// A login ends at any gateway, in ten minutes.
func TestLoginsEndAtAnyGateway(t *testing.T) {
	t.Parallel()
	d, store := newDirectory(t), miniredis.RunT(t)
	one := start(t, issued(d), store)
	other := start(t, issued(d), store)
	p := one.visitor(t)
	_, header, _ := p.get(one.URL + toIssuer)
	back := strings.Replace(d.follow(header.Get("Location")), one.URL, other.URL, 1)
	if status, _, body := p.get(back); status != http.StatusSeeOther {
		t.Errorf("the way back to the other gateway: %d %s", status, body)
	}
	late := one.visitor(t)
	_, header, _ = late.get(one.URL + toIssuer)
	back = d.follow(header.Get("Location"))
	one.ahead.Store(int64(10 * time.Minute))
	if status, _, _ := late.get(back); status != http.StatusBadRequest {
		t.Errorf("after ten minutes: %d, want 400", status)
	}
}
