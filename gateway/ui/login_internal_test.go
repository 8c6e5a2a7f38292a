package ui

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// A login fails on every error, so that no session begins without the name and organisation of its caller.
func TestLoginWithUnreadableResponse(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	c := NewTeam(Team{
		Ask: func(*http.Request, []byte, time.Time) Answer {
			return Answer{Status: http.StatusOK, Body: []byte(`{"key":`)}
		},
		Encrypted: func(*http.Request) bool { return true },
		Config:    func() *settings.Config { return &settings.Config{} },
		Now:       time.Now, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}, NewSessions(redistest.Once(t, miniredis.RunT(t).Addr()), "sessions:", "team"))
	r := httptest.NewRequest(http.MethodPost, c.path+loginPath, strings.NewReader(url.Values{"token": {"key"}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if err := r.ParseForm(); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	c.login(w, r)
	if w.Code != http.StatusInternalServerError || len(w.Result().Cookies()) > 0 || !strings.Contains(w.Body.String(), "cannot be decoded") {
		t.Errorf("%d %v %s, want 500 with the reason and no session", w.Code, w.Header(), w.Body)
	}
	if !strings.Contains(log.String(), "console login failed") {
		t.Errorf("logged %q, want the failed login", log.String())
	}
}
