package admin_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// account has a token of its name.
func account(name, org string, roles ...adminapi.Role) settings.AdminAccount {
	return settings.AdminAccount{Name: name, Digest: identity.DigestOf("token-of-" + name), Roles: roles, Org: org}
}

// Routes that do more than read, by the role they require. A route that is not here
// requires a viewer, or nothing.
var beyondReading = map[adminapi.Role][]string{
	adminapi.Operator: {
		"GET /admin/audit/log", "GET /admin/decisions/log", "GET /debug/pprof/", "GET /debug/pprof/profile", "GET /debug/pprof/symbol", "GET /debug/pprof/trace",
		"POST /admin/limits/reset", "POST /admin/spend/adjust", "POST /admin/spend/adopt", "POST /admin/spend/adopt-team", "POST /admin/spend/holds/release", "POST /admin/spend/reconcile", "POST /admin/spend/snooze",
	},
	adminapi.Approver: {"POST /admin/approvals/deny", "POST /admin/approvals/grant"},
	adminapi.Admin:    {"GET /admin/config", "GET /admin/config/diff", "GET /admin/config/revisions", "POST /admin/keys/create", "POST /admin/keys/revoke", "POST /admin/keys/rotate", "POST /admin/policies/replay", "POST /admin/policies/try", "POST /admin/tokens/revoke"},
}

// Each role is admitted to each route that requires it, of the organisation it is bound
// to if it is, and to no other; without a token nothing is, but probes and metrics.
func TestRolesByRoute(t *testing.T) {
	d := deps("the-shared-token")
	var accounts []settings.AdminAccount
	for _, role := range adminapi.Role("").Values() {
		accounts = append(accounts, account("all-"+role, "", adminapi.Role(role)), account("acme-"+role, "acme", adminapi.Role(role)))
	}
	d.Admins = func() *admin.Directory { return directory("the-shared-token", accounts...) }
	routes, h := admin.Routes(d.Guard, gateway.AdminRows(), func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Query().Get("org")) })
	listed := make(map[adminapi.Role][]string)
	for _, rt := range routes {
		name := rt.Method + " " + rt.Path
		if rt.Role != "" && rt.Role != adminapi.Viewer {
			listed[rt.Role] = append(listed[rt.Role], name)
		}
		if rt.Changes && (rt.Role == "" || rt.Role == adminapi.Viewer) {
			t.Errorf("%s changes something, and viewers may ask it", name)
		}
		refused := http.StatusUnauthorized
		if rt.Role == "" {
			refused = http.StatusOK
		}
		for _, token := range []string{"", "wrong", "token-of-stranger"} {
			if w := ask(h, rt.Method, rt.Path, "192.0.2.1:1", token); w.Code != refused {
				t.Errorf("%s with token %q: %d, want %d", name, token, w.Code, refused)
			}
		}
		if w := ask(h, rt.Method, rt.Path, "192.0.2.1:1", "the-shared-token"); w.Code != http.StatusOK {
			t.Errorf("%s with the shared token: %d, want 200", name, w.Code)
		}
		for _, a := range accounts {
			may := rt.Role == "" || rt.Role == adminapi.Viewer || slices.Contains(a.Roles, rt.Role) || slices.Contains(a.Roles, adminapi.Admin)
			want := map[bool]int{true: 200, false: 403}[may && (a.Org == "" || rt.Org)]
			if w := ask(h, rt.Method, rt.Path, "192.0.2.1:1", "token-of-"+a.Name); w.Code != want {
				t.Errorf("%s as %s: %d %s, want %d", name, a.Name, w.Code, w.Body, want)
			}
		}
	}
	for _, names := range listed {
		slices.Sort(names)
	}
	if diff := cmp.Diff(beyondReading, listed); diff != "" {
		t.Errorf("routes beyond reading (-want +got):\n%s", diff)
	}
}

// An admin bound to an organisation names it or none, however the request spells it.
func TestAdminsOfAnOrganisation(t *testing.T) {
	d := deps("")
	d.Admins = func() *admin.Directory { return directory("", account("ann", "acme", adminapi.Admin)) }
	_, h := admin.Routes(d.Guard, gateway.AdminRows(), func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Query().Get("org")) })
	for query, want := range map[string]string{
		"": "200 acme", "?org=acme": "200 acme", "?org=": "200 acme", "?org=acme&org=globex": "200 acme", "?org=;&org=acme": "200 acme",
		"?org=globex": "403", "?org=globex&org=acme": "403", "?org=ACME": "403", "?org=acme%20": "403", "?ORG=globex": "200 acme",
	} {
		w := ask(h, "POST", "/admin/limits/reset"+query, "192.0.2.1:1", "token-of-ann")
		code, org, _ := strings.Cut(want, " ")
		if got := w.Result().Status[:3]; got != code || org != "" && w.Body.String() != org {
			t.Errorf("%q: %s %s, want %s", query, got, w.Body, want)
		}
	}
}

// A token ends with its time, and with its account.
func TestAdminsEnd(t *testing.T) {
	d := deps("")
	until := account("ann", "", adminapi.Viewer)
	until.Expires = time.Unix(1000, 0)
	now, accounts := time.Unix(999, 0), []settings.AdminAccount{until, account("bob", "", adminapi.Viewer)}
	d.Now, d.Admins = func() time.Time { return now }, func() *admin.Directory { return directory("", accounts...) }
	h := d.handler()
	for _, step := range []struct {
		what     string
		change   func()
		ann, bob int
	}{
		{"both", func() {}, 200, 200},
		{"ann's time is over", func() { now = time.Unix(1000, 0) }, 401, 200},
		{"bob is removed", func() { accounts = accounts[:1] }, 401, 401},
	} {
		step.change()
		for name, want := range map[string]int{"ann": step.ann, "bob": step.bob} {
			if w := ask(h, "GET", "/admin/orgs", "192.0.2.1:1", "token-of-"+name); w.Code != want {
				t.Errorf("%s: %s gets %d, want %d", step.what, name, w.Code, want)
			}
		}
	}
}
