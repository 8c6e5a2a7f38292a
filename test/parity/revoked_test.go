package parity

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/issuer"
)

// revoke asks the admin API to revoke tokens, by id or subject.
func (d *door) revoke(t *testing.T, q url.Values) (status int, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	d.gateway.AdminHandler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8081/admin/tokens/revoke?"+q.Encode(), nil))
	return w.Code, w.Body.String()
}

// mustRevoke revokes tokens of corp.
func (d *door) mustRevoke(t *testing.T, by, value string) {
	t.Helper()
	if status, body := d.revoke(t, url.Values{"issuer": {"corp"}, by: {value}}); status != 200 || !strings.Contains(body, fmt.Sprintf("%q: %q", "by", "unauthenticated")) {
		t.Fatalf("revoke by %s: %d %s, want 200", by, status, body)
	}
}

// unhurried lifts the quota of callers with tokens.
func unhurried(d *door) {
	d.text = strings.Replace(d.text, "limits: {minute: 20}", "limits: {minute: 1000}", 1)
}

// A token that is revoked is refused at once where that was asked for, at other gateways
// with their next look, and after a restart; the others of its subject and issuer are not.
func TestRevokedTokens(t *testing.T) {
	t.Parallel()
	i := issuer.RunT(t)
	eachDoor(t, func(t *testing.T, a *door) {
		b := a.beside(t)
		lost := i.Token(t, claims(issuer.Claims{"jti": "lost", "aud": []string{"x", "tollgate"}}))
		kept := i.Token(t, claims(issuer.Claims{"jti": "kept"}))
		bob := i.Token(t, claims(issuer.Claims{"sub": "bob", "jti": "bob"}))
		for _, d := range []*door{a, b} {
			d.expect(t, "before", lost, 200)
		}
		a.mustRevoke(t, "id", "lost")
		b.refresh(t)
		c := a.beside(t)
		c.refresh(t)
		for name, d := range map[string]*door{"here": a, "another gateway": b, "one that starts": c} {
			d.expect(t, name+", the revoked token", lost, 401)
			for dialect, request := range map[string]string{
				"v1":      request("POST", "/v1/pods", lost, `{"imageName":"i","gpuTypeIds":["NVIDIA L4"]}`),
				"graphql": request("POST", "/graphql", lost, `{"query":"{ myself { pods { id } } }"}`),
			} {
				if got := d.ask(t, request); got.Status != 401 {
					t.Errorf("%s, %s: %d %s, want 401", name, dialect, got.Status, got.Body)
				}
			}
			d.expect(t, name+", another of the subject", kept, 200)
		}
		a.mustRevoke(t, "subject", "ann@acme.test")
		b.refresh(t)
		fresh := i.Token(t, claims(issuer.Claims{"jti": "fresh", "iat": start.Add(time.Minute).Unix()}))
		a.advance(time.Minute)
		for name, d := range map[string]*door{"here": a, "another gateway": b} {
			d.expect(t, name+", what the subject had", kept, 401)
			d.expect(t, name+", what it is issued since", fresh, 200)
			d.expect(t, name+", another subject", bob, 200)
		}
		if !strings.Contains(a.logs.String(), "revoked") || !strings.Contains(a.logs.String(), "/admin/tokens/revoke") {
			t.Error("the log does not have the revocation, or why the token was refused")
		}
		for _, q := range []url.Values{
			{"issuer": {"corp"}}, {"issuer": {"corp"}, "id": {"x"}, "subject": {"y"}}, {"issuer": {"corp"}, "id": {strings.Repeat("x", 513)}},
		} {
			if status, body := a.revoke(t, q); status != 400 {
				t.Errorf("revoke %.60v: %d %s, want 400", q, status, body)
			}
		}
		if status, body := a.revoke(t, url.Values{"issuer": {"none"}, "id": {"x"}}); status != 404 {
			t.Errorf("revoke at an unknown issuer: %d %s, want 404", status, body)
		}
	}, withIssuer(i), unhurried)
}

// A revoked token stays so while the store is away, when it has lost everything, and when the
// issuer is configured anew. A gateway that has never read it accepts no token.
func TestRevokedTokensAndTheStore(t *testing.T) {
	t.Parallel()
	i := issuer.RunT(t)
	eachDoor(t, func(t *testing.T, a *door) {
		lost, kept := i.Token(t, claims(issuer.Claims{"jti": "lost"})), i.Token(t, claims(issuer.Claims{"jti": "kept"}))
		a.mustRevoke(t, "id", "lost")
		a.redis.SetError("LOADING for a while")
		_ = a.gateway.RefreshKeys(t.Context()) // which fails
		a.expect(t, "away: revoked", lost, 401)
		a.expect(t, "away: not revoked", kept, 200)
		if status, body := a.revoke(t, url.Values{"issuer": {"corp"}, "id": {"kept"}}); status != 503 {
			t.Errorf("away: revoke: %d %s, want 503", status, body)
		}
		b := a.beside(t)
		_ = b.gateway.RefreshKeys(t.Context())
		b.expect(t, "a gateway that has read nothing", lost, 503)
		b.expect(t, "a gateway that has read nothing", kept, 503)
		b.expect(t, "a gateway that has read nothing, a key of the file", "key_platform", 200)
		a.redis.SetError("")
		b.refresh(t)
		b.expect(t, "a gateway that has read now", lost, 401)
		b.expect(t, "a gateway that has read now", kept, 200)
		a.redis.FlushAll()
		a.refresh(t)
		c := a.beside(t)
		c.refresh(t)
		c.expect(t, "a gateway that starts after the store lost all", lost, 401)
		if err := c.gateway.Swap(load(t, strings.Replace(c.text, "    limits: {minute: 1000}", "    max_age: 100h\n    limits: {minute: 1000}", 1), c.upstream)); err != nil {
			t.Fatal(err)
		}
		c.expect(t, "after a reload", lost, 401)
	}, withIssuer(i), unhurried)
}

// A stream ends when the token is revoked that opened it, at another gateway, too.
func TestStreamsEndWithRevokedTokens(t *testing.T) {
	t.Parallel()
	i := issuer.RunT(t)
	for by, value := range map[string]string{"id": "lost", "subject": "ann@acme.test"} {
		a := openDoor(t, "http", withIssuer(i)) // through the other, a stream is Envoy's own
		b := a.beside(t)
		token := i.Token(t, claims(issuer.Claims{"jti": "lost"}))
		pod := a.ask(t, request("POST", "/v2/pods", token, pod4090))
		if pod.Status != 201 {
			t.Fatalf("create: %d %s", pod.Status, pod.Body)
		}
		lines, stop := b.stream(t, "/v2/pods/"+fmt.Sprint(field(t, pod.Body, "id"))+"/logs", token)
		<-lines // it flows
		a.mustRevoke(t, by, value)
		b.refresh(t)
		for range lines { // until it is cut; without that, until the test times out
		}
		stop()
	}
}
