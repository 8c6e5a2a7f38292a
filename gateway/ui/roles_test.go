package ui_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/selfservice"
)

// decided is the role that each row requires. Whoever adds a row decides here.
var decided = map[string]adminapi.Role{
	"GET /livez": adminapi.Anyone, "GET /readyz": adminapi.Anyone, "GET /metrics": adminapi.Anyone,
	"GET /admin/openapi.json": adminapi.Viewer, "GET /admin/status": adminapi.Viewer, "GET /admin/overview": adminapi.Viewer, "GET /admin/orgs": adminapi.Viewer,
	"GET /admin/limits": adminapi.Viewer, "GET /admin/spend": adminapi.Viewer, "GET /admin/spend/holds": adminapi.Viewer, "GET /admin/spend/history": adminapi.Viewer,
	"GET /admin/spend/forecast": adminapi.Viewer, "GET /admin/spend/export": adminapi.Viewer, "GET /admin/spend/idle": adminapi.Viewer, "GET /admin/approvals": adminapi.Viewer,
	"GET /admin/keys": adminapi.Viewer, "GET /admin/tokens/revoked": adminapi.Viewer, "GET /admin/legacy": adminapi.Viewer, "GET /admin/envoy": adminapi.Viewer,
	"GET /admin/envoy/snapshot": adminapi.Viewer, "GET /admin/decisions": adminapi.Viewer, "GET /admin/decisions/stream": adminapi.Viewer, "GET /admin/policies/counts": adminapi.Viewer,
	"GET /admin/decisions/{id}": adminapi.Viewer, "POST /admin/explain": adminapi.Viewer, "GET /admin/audit": adminapi.Viewer, "GET /admin/alerts": adminapi.Viewer, "GET /admin/exceptions": adminapi.Viewer,
	"GET /admin/policies": adminapi.Viewer, "GET /admin/gateways": adminapi.Viewer, "GET /admin/report": adminapi.Viewer, "GET /admin/spend/resources": adminapi.Viewer,
	"GET /admin/decisions/outcomes": adminapi.Viewer, "GET /admin/spend/compare": adminapi.Viewer, "GET /admin/spend/budgets": adminapi.Viewer, "GET /admin/spend/fits": adminapi.Viewer, "GET /admin/search": adminapi.Viewer,
	"GET /admin/decisions/log": adminapi.Operator, "GET /admin/audit/log": adminapi.Operator, "POST /admin/limits/reset": adminapi.Operator, "POST /admin/spend/reconcile": adminapi.Operator,
	"POST /admin/spend/adjust": adminapi.Operator, "POST /admin/spend/adopt": adminapi.Operator, "POST /admin/spend/adopt-team": adminapi.Operator, "POST /admin/spend/holds/release": adminapi.Operator, "POST /admin/spend/snooze": adminapi.Operator,
	"GET /debug/pprof/": adminapi.Operator, "GET /debug/pprof/profile": adminapi.Operator, "GET /debug/pprof/symbol": adminapi.Operator, "GET /debug/pprof/trace": adminapi.Operator,
	"POST /admin/approvals/grant": adminapi.Approver, "POST /admin/approvals/deny": adminapi.Approver,
	"GET /admin/config": adminapi.Admin, "GET /admin/config/diff": adminapi.Admin, "GET /admin/config/revisions": adminapi.Admin, "POST /admin/keys/create": adminapi.Admin, "POST /admin/keys/rotate": adminapi.Admin, "POST /admin/keys/revoke": adminapi.Admin,
	"POST /admin/policies/replay": adminapi.Admin, "POST /admin/policies/try": adminapi.Admin, "POST /admin/tokens/revoke": adminapi.Admin,
}

// Every row has a decision, and holds it: by its route, for each role, for no token, and for the key of a caller.
func TestEveryRoleByEveryRow(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	roles := map[string]adminapi.Role{"token_vera": adminapi.Viewer, "token_olga": adminapi.Operator, "token_anna": adminapi.Approver, "token_root": adminapi.Admin, "key_of_ann": "", "": ""}
	seen := make(map[string]bool)
	for _, r := range gateway.AdminRows() {
		want, isDecided := decided[r.Pattern]
		seen[r.Pattern] = true
		if !isDecided || want != r.Role {
			t.Errorf("%s requires %q, decided is %q: decide in this test", r.Pattern, r.Role, want)
			continue
		}
		for token, role := range roles {
			allowed := role == adminapi.Admin || role == want || role != "" && want == adminapi.Viewer
			if want == adminapi.Anyone || allowed && strings.HasPrefix(r.Path(), "/debug/pprof/") { // a profile takes its time
				continue
			}
			ctx, cancel := context.WithCancel(t.Context())
			if r.Path() == "/admin/decisions/stream" {
				cancel() // it would not end
			}
			req := httptest.NewRequestWithContext(ctx, r.Method(), strings.Replace(r.Path(), "{id}", "x", 1)+"?org=acme", http.NoBody)
			req.Header.Set("Authorization", "Bearer "+token)
			w := httptest.NewRecorder()
			c.gateway.AdminHandler().ServeHTTP(w, req)
			cancel()
			refused := w.Code == http.StatusForbidden
			if role == "" { // the last of many wrong tokens are slowed
				refused = w.Code == http.StatusUnauthorized || w.Code == http.StatusTooManyRequests
			}
			if refused == allowed {
				t.Errorf("%s with token %q of role %q: %d %s", r.Pattern, token, role, w.Code, w.Body)
			}
		}
	}
	for pattern := range decided {
		if !seen[pattern] {
			t.Errorf("%s is decided, and no row", pattern)
		}
	}
}

// ofLeads are the routes of callers that leads alone may use; false is a route for all. Whoever adds a route decides here.
var ofLeads = map[string]bool{
	"self.me": false, "self.spend": false, "self.resources": false, "self.decisions": false, "self.decision": false, "self.approvals": false,
	"self.approvals.grant": true, "self.approvals.deny": true,
	"keys.list": true, "keys.create": true, "keys.rotate": true, "keys.revoke": true,
	"snooze": false, "snooze.page": false, "snooze.link": false,
}

// Every route of callers has a decision, and holds it for a lead, a member and a viewer of its team, another team, an admin's token and none.
func TestEveryCallerByEveryRoute(t *testing.T) {
	t.Parallel()
	text := strings.Replace(teamText, "    keys:\n", "    keys:\n      - {id: vic, team: research, roles: [viewer], sha256: SHA256(key_of_vic)}\n", 1)
	c := startTeam(t, text, miniredis.RunT(t))
	routes := slices.Concat((*selfservice.Service)(nil).Routes(), (*callers.Keys)(nil).Routes(), (*money.Snooze)(nil).Routes())
	for _, r := range routes {
		lead, isDecided := ofLeads[r.ID]
		if !isDecided {
			t.Errorf("%s: decide in this test whether it is for leads", r.ID)
			continue
		}
		for _, key := range []string{"key_of_lena", "key_of_ann", "key_of_vic", "key_of_mel", "token_root", ""} {
			if r.Public {
				continue
			}
			status, answer := c.call(t, r.Method, strings.Replace(r.Pattern, "{id}", "x", 1), key, "")
			isCaller := strings.HasPrefix(key, "key_of_")
			switch {
			case !isCaller && status != http.StatusUnauthorized && status != http.StatusTooManyRequests,
				isCaller && lead && key != "key_of_lena" && status != http.StatusForbidden,
				isCaller && (!lead || key == "key_of_lena") && (status == http.StatusUnauthorized || status == http.StatusForbidden):
				t.Errorf("%s with %q: %d %s", r.ID, key, status, answer)
			}
		}
	}
	// The forms are those of the routes, with the same rights.
	member := c.caller(t, "ann")
	for _, form := range []string{"approvals/grant", "approvals/deny", "keys/create", "keys/rotate", "keys/revoke"} {
		if status, _, body := member.post(c.URL+"/tollgate/ui/"+form, url.Values{"id": {"x"}, "confirmed": {"yes"}}); status != http.StatusForbidden {
			t.Errorf("the form %s of a member: %d %s", form, status, body)
		}
		if status, header, _ := c.visitor(t).post(c.URL+"/tollgate/ui/"+form, url.Values{"id": {"x"}}); status != http.StatusSeeOther || header.Get("Location") != "/tollgate/ui/login" {
			t.Errorf("the form %s without a session: %d to %q", form, status, header.Get("Location"))
		}
		if status, _, _ := member.get(c.URL + "/tollgate/ui/" + form); status != http.StatusNotFound {
			t.Errorf("GET of the form %s: %d, want 404", form, status)
		}
	}
}
