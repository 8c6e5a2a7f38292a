package parity

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/issuer"
)

// admins are those of these tests; the token of each is token_NAME.
const admins = `admin: {admins: [
  {name: vera, sha256: SHA256(token_vera), roles: [viewer]},
  {name: olga, sha256: SHA256(token_olga), roles: [operator]},
  {name: anna, sha256: SHA256(token_anna), roles: [approver]},
  {name: ada, sha256: SHA256(token_ada), roles: [admin]},
  {name: past, sha256: SHA256(token_past), roles: [admin], expires: 2026-11-21T10:00:00Z},
  {name: gary, sha256: SHA256(token_gary), roles: [admin], org: globex},
]}
`

func administered(d *door) { d.text = admins + d.text }

// as asks the admin listener with the token of an admin, "" for none.
func (d *door) as(t *testing.T, name, method, target string) *httptest.ResponseRecorder {
	t.Helper()
	switch name {
	case "":
		return d.with(t, "192.0.2.1:1", "", method, target)
	case "past", "stranger":
		return d.with(t, "192.0.2.9:1", "token_"+name, method, target) // wrong tokens slow down their address alone
	}
	return d.with(t, "192.0.2.1:1", "token_"+name, method, target)
}

// with asks the admin listener from an address, with a token unless it is "".
func (d *door) with(t *testing.T, peer, token, method, target string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), method, target, http.NoBody)
	r.Host, r.RemoteAddr = "gateway.internal", peer
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	d.gateway.AdminHandler().ServeHTTP(w, r)
	return w
}

// The listener asks of each operation of its document for the role that the document
// names, and nothing else lets one pass.
func TestAdminsHaveTheRolesOfTheDocument(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", administered)
	var doc struct {
		Paths map[string]map[string]struct {
			Security []struct{ Token []string }
		}
	}
	if w := d.as(t, "vera", "GET", "/admin/openapi.json"); w.Code != 200 || json.Unmarshal(w.Body.Bytes(), &doc) != nil {
		t.Fatalf("the document: %d %.200s", w.Code, w.Body)
	}
	roles := map[string][]string{
		"vera": {"viewer"}, "olga": {"viewer", "operator"}, "anna": {"viewer", "approver"}, "ada": {"viewer", "operator", "approver", "admin"},
	}
	asked := 0
	for path, methods := range doc.Paths {
		for method, op := range methods {
			target := strings.Replace(path, "{id}", "x", 1) + "?org=acme&seconds=1"
			if len(op.Security) == 0 {
				continue
			}
			role := op.Security[0].Token[0]
			for _, name := range []string{"", "past", "stranger"} {
				if w := d.as(t, name, strings.ToUpper(method), target); w.Code != 401 && (w.Code != 429 || name == "") {
					t.Errorf("%s %s as %q: %d, want 401", method, path, name, w.Code)
				}
			}
			for name, has := range roles {
				may := slices.Contains(has, role)
				if may && (strings.HasPrefix(path, "/debug/pprof/") || strings.HasSuffix(path, "/stream")) {
					continue // takes its time
				}
				asked++
				if w := d.as(t, name, strings.ToUpper(method), target); (w.Code == 403) == may || w.Code == 401 {
					t.Errorf("%s %s, which requires the role %s, as %s: %d %s", method, path, role, name, w.Code, w.Body)
				}
			}
		}
	}
	if asked < 4*20 {
		t.Errorf("%d questions were asked, want four of each operation", asked)
	}
}

// A key can always be revoked: wrong tokens slow down further wrong ones from their
// address, and never a right one.
func TestGuessedAdminTokensLockNobodyOut(t *testing.T) {
	t.Parallel()
	const peer = "192.0.2.7:1"
	d := openDoor(t, "http", administered)
	if w := d.as(t, "ada", "POST", "/admin/keys/create?org=acme&spec="+`{"id":"leaked","team":"research"}`); w.Code != 201 {
		t.Fatalf("a key: %d %s", w.Code, w.Body)
	}
	last := 0
	for i := range 40 {
		last = d.with(t, peer, fmt.Sprintf("token_guess_%d", i), "GET", "/admin/status").Code
	}
	if last != 429 {
		t.Errorf("the 40th wrong token: %d, want 429", last)
	}
	if w := d.with(t, peer, "token_ada", "POST", "/admin/keys/revoke?org=acme&id=leaked"); w.Code != 204 {
		t.Errorf("revoking from there: %d %s, want 204", w.Code, w.Body)
	}
	if w := d.with(t, peer, "token_past", "GET", "/admin/status"); w.Code != 429 {
		t.Errorf("a token whose time is over: %d, want 429", w.Code)
	}
}

// What an admin does has the admin's name: in the audit log, in a grant and in the
// decision that the grant let pass. A name that is not one's own is refused.
func TestAdminsAreNamed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	d := openDoor(t, "http", under(approvableCeiling), administered, audited(path))
	call := request("POST", "/v2/pods", "key_research", podL4)
	id := refusedWith(t, d.ask(t, call), 403)
	grant := "/admin/approvals/grant?org=acme&id=" + id
	for _, step := range []struct {
		who, query string
		status     int
	}{{"olga", "", 403}, {"anna", "&by=ada", 400}, {"anna", "", 200}} {
		if w := d.as(t, step.who, "POST", grant+step.query); w.Code != step.status {
			t.Fatalf("grant%s as %s: %d %s, want %d", step.query, step.who, w.Code, w.Body, step.status)
		}
	}
	passed := d.ask(t, call)
	if passed.Status != 201 {
		t.Fatalf("the granted call: %d %s", passed.Status, passed.Body)
	}
	decision := passed.Header.Get("X-Tollgate-Decision")
	if w := d.as(t, "vera", "GET", "/admin/decisions/"+decision); w.Code != 200 || !strings.Contains(w.Body.String(), "anna") {
		t.Errorf("decision %q: %d %s, want the name of person who granted it", decision, w.Code, w.Body)
	}
	if w := d.as(t, "gary", "GET", "/admin/decisions/"+decision); w.Code != 404 {
		t.Errorf("the decision for the admin of another organisation: %d %s, want 404", w.Code, w.Body)
	}
	if w := d.as(t, "gary", "GET", "/admin/decisions?org=acme"); w.Code != 403 {
		t.Errorf("decisions of another organisation: %d %s, want 403", w.Code, w.Body)
	}
	if w := d.as(t, "ada", "POST", "/admin/keys/create?org=acme&spec="+`{"id":"made","team":"research"}`); w.Code != 201 || !strings.Contains(w.Body.String(), `"by": "ada"`) {
		t.Errorf("the key: %d %s, want it made by ada", w.Code, w.Body)
	}
	var who []string
	for _, l := range readAudit(t, path) {
		if l.Phase == "intent" && strings.HasPrefix(l.Operation, "POST /admin") {
			who = append(who, l.Who+" "+l.Operation)
		}
	}
	want := []string{"anna POST /admin/approvals/grant", "anna POST /admin/approvals/grant", "ada POST /admin/keys/create"}
	if !slices.Equal(who, want) {
		t.Errorf("the audit log has %q, want %q", who, want)
	}
	if logs := d.logs.String(); !strings.Contains(logs, `"msg":"admin refused","who":"olga"`) {
		t.Error("the log lacks the refusal of olga")
	}
}

// Admins with tokens of an issuer have the roles that its groups give them and no others,
// in the organisation it is bound to, and are named in the audit log.
func TestAdminsOfAnIssuer(t *testing.T) {
	t.Parallel()
	i := issuer.RunT(t)
	path := filepath.Join(t.TempDir(), "audit.log")
	section := `admin: {issuers: [{id: corp, url: "` + i.URL + `", audiences: [tollgate-admin], claims: {name: email}, org: acme,
  grants: {sre: operator, leads: approver, readers: viewer}}]}
`
	d := openDoor(t, "http", audited(path), func(d *door) { d.text = section + d.text })
	token := func(others issuer.Claims) string {
		c := issuer.Claims{"sub": "1", "email": "ann@acme.test", "aud": "tollgate-admin", "iat": start.Unix(), "exp": start.Add(time.Hour).Unix(), "groups": []string{"sre", "staff"}}
		maps.Copy(c, others)
		return i.Token(t, c)
	}
	const reset, status, spend = "/admin/limits/reset?org=acme", "/admin/status", "/admin/limits?org=acme"
	for n, tc := range []struct {
		what, token, method, target string
		want                        int
	}{
		{"an operator", token(nil), "POST", reset, 204},
		{"an operator reads", token(nil), "GET", spend, 200},
		{"an operator of another organisation", token(nil), "POST", "/admin/limits/reset?org=globex", 403},
		{"an operator asks of the gateway", token(nil), "GET", status, 403},
		{"an operator makes a key", token(nil), "POST", "/admin/keys/create?org=acme&spec={}", 403},
		{"a viewer changes", token(issuer.Claims{"groups": "readers"}), "POST", reset, 403},
		{"a viewer", token(issuer.Claims{"groups": "readers"}), "GET", spend, 200},
		{"no group of ours", token(issuer.Claims{"groups": []string{"staff"}}), "GET", spend, 403},
		{"no groups", token(issuer.Claims{"groups": nil}), "GET", spend, 403},
		{"no name", token(issuer.Claims{"email": nil}), "GET", spend, 403},
		{"two names", token(issuer.Claims{"email": []string{"a", "b"}}), "GET", spend, 403},
		{"a name of two lines", token(issuer.Claims{"email": "a\nb"}), "GET", spend, 403},
		{"for callers", token(issuer.Claims{"aud": "tollgate"}), "GET", spend, 401},
		{"expired", token(issuer.Claims{"exp": start.Add(-time.Hour).Unix()}), "GET", spend, 401},
		{"of another issuer", issuer.RunT(t).Token(t, issuer.Claims{"aud": "tollgate-admin"}), "GET", spend, 401},
		{"without a signature", issuer.Key{Algorithm: "none"}.Sign(t, nil, issuer.Claims{"iss": i.URL}), "GET", spend, 401},
		{"none", "", "GET", spend, 401},
	} {
		w := d.with(t, fmt.Sprintf("192.0.2.%d:1", n+10), tc.token, tc.method, tc.target)
		if w.Code != tc.want {
			t.Errorf("%s: %d %s, want %d", tc.what, w.Code, w.Body, tc.want)
		}
		if signature := tc.token[strings.LastIndex(tc.token, ".")+1:]; signature != "" && strings.Contains(d.logs.String(), signature) {
			t.Errorf("%s: the token is logged", tc.what)
		}
	}
	if who := readAudit(t, path)[0].Who; who != "corp:ann@acme.test" {
		t.Errorf("the audit log has %q, want the claim that names her", who)
	}
	if w := d.ask(t, request("GET", "/v2/pods", token(nil), "")); w.Status != 401 {
		t.Errorf("as a caller: %d %s, want 401", w.Status, w.Body)
	}
	d.advance(time.Minute) // the issuer is asked again
	i.Down(true)
	unseen := issuer.NewKey(t, "ES256").Sign(t, nil, issuer.Claims{"iss": i.URL, "sub": "1", "aud": "tollgate-admin", "iat": start.Unix(), "exp": start.Add(time.Hour).Unix()})
	if w := d.with(t, "192.0.2.99:1", unseen, "GET", spend); w.Code != 503 {
		t.Errorf("with a key that cannot be read: %d %s, want 503", w.Code, w.Body)
	}
}

// An admin who is removed from the configuration is refused with the next call.
func TestAdminsAreRemovedByAReload(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", administered)
	status := func(want int) {
		t.Helper()
		if w := d.as(t, "vera", "GET", "/admin/status"); w.Code != want {
			t.Errorf("status as vera: %d %s, want %d", w.Code, w.Body, want)
		}
	}
	status(200)
	if err := d.gateway.Swap(load(t, strings.Replace(d.text, "{name: vera, ", "{name: vera2, ", 1), d.upstream)); err != nil {
		t.Fatal(err)
	}
	status(200) // the token has another name
	if err := d.gateway.Swap(load(t, strings.Replace(d.text, "token_vera", "token_other", 1), d.upstream)); err != nil {
		t.Fatal(err)
	}
	status(401)
}
