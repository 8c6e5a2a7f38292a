package admin_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/admin"
)

// history keeps one decision.
type history struct{}

func (history) Find(id string) (any, bool) { return map[string]string{"decisionId": id}, id == "d1" }

func (history) List(org string, limit int) any { return []any{org, limit} }

func (history) Explain(_ context.Context, question []byte) (any, error) {
	if string(question) == "nonsense" {
		return nil, admin.BadRequestError{Reason: "not a question"}
	}
	return map[string]string{"asked": string(question)}, nil
}

func (history) Audit(_ context.Context, org string) (any, error) {
	switch org {
	case "acme":
		return map[string]string{"org": org}, nil
	case "away":
		return nil, context.DeadlineExceeded
	}
	return nil, admin.ErrNoOrg
}

func TestDecisions(t *testing.T) {
	for _, tc := range []struct {
		method, target, body string
		status               int
		want                 string
	}{
		{"GET", "/admin/decisions/d1", "", 200, `"decisionId": "d1"`},
		{"GET", "/admin/decisions/d2", "", 404, "keeps no decision"},
		{"GET", "/admin/decisions?org=acme", "", 200, `50`},
		{"GET", "/admin/decisions?org=acme&limit=7", "", 200, `7`},
		{"GET", "/admin/decisions?limit=0", "", 400, "limit"},
		{"GET", "/admin/decisions?limit=many", "", 400, "limit"},
		{"POST", "/admin/explain", "{}", 200, `"asked": "{}"`},
		{"POST", "/admin/explain", "nonsense", 400, "not a question"},
		{"POST", "/admin/explain", strings.Repeat(" ", 2<<20), 400, "cannot be read"},
		{"GET", "/admin/explain", "", 405, ""},
		{"GET", "/admin/audit?org=acme", "", 200, `"org": "acme"`},
		{"GET", "/admin/audit?org=away", "", 502, "deadline"},
		{"GET", "/admin/audit", "", 404, "name a configured organisation"},
		{"GET", "/admin/status", "", 200, `"revision": "p1"`},
	} {
		w := httptest.NewRecorder()
		admin.New(deps("", nil)).ServeHTTP(w, httptest.NewRequest(tc.method, "http://127.0.0.1:8081"+tc.target, strings.NewReader(tc.body)))
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.want) {
			t.Errorf("%s %s: %d %s, want %d and %q", tc.method, tc.target, w.Code, w.Body, tc.status, tc.want)
		}
	}
	for _, target := range []string{"/admin/decisions", "/admin/decisions/d1", "/admin/audit?org=acme", "/admin/approvals?org=acme"} {
		if w := get(deps("secret", nil), target, ""); w.Code != http.StatusUnauthorized {
			t.Errorf("%s without the token: %d", target, w.Code)
		}
	}
}
