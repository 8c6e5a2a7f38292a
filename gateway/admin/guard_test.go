package admin_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// ask sends one request from an address to h.
func ask(h http.Handler, method, target, peer, token string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1:8081"+target, nil)
	r.RemoteAddr = peer
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestWrongTokensAreLoggedAndSlowed(t *testing.T) {
	var log bytes.Buffer
	d := deps("the-right-token")
	d.Attempts, d.Guard.Logger = attempts(3, 40), slog.New(slog.NewTextHandler(&log, nil))
	h := d.handler()
	const guesser, operator = "192.0.2.1:4711", "192.0.2.2:4711"
	for i := range 10 { // a missing token is no guess
		if w := ask(h, "GET", "/admin/orgs", guesser, ""); w.Code != http.StatusUnauthorized {
			t.Fatalf("request %d without a token: %d, want 401", i, w.Code)
		}
	}
	for i := range 3 {
		if w := ask(h, "GET", "/admin/orgs", guesser, "guessed"); w.Code != http.StatusUnauthorized {
			t.Fatalf("wrong token %d: %d, want 401", i, w.Code)
		}
	}
	if w := ask(h, "GET", "/admin/orgs", guesser, "guessed"); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "2" {
		t.Errorf("fourth wrong token: %d, Retry-After %q, want 429 and 2", w.Code, w.Header().Get("Retry-After"))
	}
	for _, peer := range []string{guesser, operator} {
		if w := ask(h, "GET", "/admin/orgs", peer, "the-right-token"); w.Code != http.StatusOK {
			t.Errorf("the right token from %s: %d, want 200", peer, w.Code)
		}
	}
	if w := ask(h, "GET", "/livez", guesser, ""); w.Code != http.StatusOK {
		t.Errorf("a probe from the slowed address: %d, want 200", w.Code)
	}
	if got := strings.Count(log.String(), "invalid admin token"); got != 3 {
		t.Errorf("%d lines about wrong tokens, want 3:\n%s", got, log.String())
	}
	for _, want := range []string{"client.address=192.0.2.1", "path=/admin/orgs"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %s:\n%s", want, log.String())
		}
	}
	if strings.Contains(log.String(), "guessed") {
		t.Errorf("the log repeats a token:\n%s", log.String())
	}
}

func TestChangesAreLogged(t *testing.T) {
	var log bytes.Buffer
	d := deps("the-right-token")
	d.Guard.Logger = slog.New(slog.NewTextHandler(&log, nil))
	h := d.handler()
	ask(h, "POST", "/admin/limits/reset?org=acme&scope=key:ann", "192.0.2.1:4711", "the-right-token")
	ask(h, "POST", "/admin/limits/reset?org=other", "192.0.2.1:4711", "the-right-token")
	ask(h, "GET", "/admin/orgs", "192.0.2.1:4711", "the-right-token")
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines, want one per change:\n%s", len(lines), log.String())
	}
	for i, want := range [][]string{{"http.response.status_code=204", "scope=key%3Aann"}, {"http.response.status_code=404", "org=other"}} {
		for _, part := range append(want, "who=admin", "client.address=192.0.2.1", "path=/admin/limits/reset") {
			if !strings.Contains(lines[i], part) {
				t.Errorf("line %d has no %s: %s", i, part, lines[i])
			}
		}
	}
}
