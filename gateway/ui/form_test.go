package ui_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// A notice is shown once, to the browser that has acted, and within a minute. It describes what was done.
func TestNoticesAreOfActions(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"with a login": text, "without": open} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, text, miniredis.RunT(t))
			p, other := c.visitor(t), c.visitor(t)
			if name == "with a login" {
				p, other = c.as(t, "olga"), c.as(t, "olga")
			}
			reset := url.Values{"org": {"acme"}, "scope": {"team:research"}, "back": {"/ui/limits?org=acme"}, "confirmed": {"yes"}}
			status, header, body := p.post(c.URL+"/ui/limits/reset", reset)
			if status != http.StatusSeeOther || header.Get("Location") != "/ui/limits?org=acme" {
				t.Fatalf("%d to %q: %s", status, header.Get("Location"), body)
			}
			const want = `<span>All rate limits of team research are reset.</span>`
			if _, _, body := p.get(c.URL + "/ui/limits?org=acme"); !strings.Contains(body, want) {
				t.Errorf("no %s in %s", want, body)
			}
			if _, _, body := p.get(c.URL + "/ui/limits?org=acme"); strings.Contains(body, `role="status"`) {
				t.Error("the notice is shown again")
			}
			_, header, _ = p.post(c.URL+"/ui/limits/reset", reset)
			cookie, _, _ := strings.Cut(header.Get("Set-Cookie"), ";")
			if name == "with a login" { // another session cannot open it
				at, err := url.Parse(c.URL + "/ui/")
				if err != nil {
					t.Fatal(err)
				}
				key, value, _ := strings.Cut(cookie, "=")
				other.http.Jar.SetCookies(at, []*http.Cookie{{Name: key, Value: value}})
				if _, _, body := other.get(c.URL + "/ui/limits?org=acme"); strings.Contains(body, `role="status"`) {
					t.Error("another session shows the notice")
				}
			}
			c.ahead.Add(int64(2 * time.Minute))
			if _, _, body := p.get(c.URL + "/ui/limits?org=acme"); strings.Contains(body, `role="status"`) {
				t.Error("an old notice is shown")
			}
		})
	}
}

// hidden are the hidden fields of a form.
var hidden = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`)

// An action that cannot be undone is confirmed on a page of its own, which works without scripts.
func TestDestructiveActionsAreConfirmed(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	p := c.as(t, "root")
	if status, _, body := p.post(c.URL+"/ui/keys/create", url.Values{"org": {"acme"}, "id": {"batch"}, "team": {"research"}}); status != http.StatusOK {
		t.Fatalf("make: %d %s", status, body)
	}
	revoke := url.Values{"org": {"acme"}, "id": {"batch"}, "back": {"/ui/keys?org=acme&search=batch"}}
	status, _, body := p.post(c.URL+"/ui/keys/revoke", revoke)
	if status != http.StatusOK || !strings.Contains(body, "Every request with the key batch is denied from now on. This cannot be undone.") || !strings.Contains(body, `href="/ui/keys?org=acme&amp;search=batch">Cancel</a>`) {
		t.Fatalf("the confirmation: %d %s", status, body)
	}
	if _, _, list := p.get(c.URL + "/ui/keys?org=acme&search=batch"); !strings.Contains(list, `<span class="status good">`) {
		t.Errorf("the key before the confirmation: %s", list)
	}
	form := url.Values{}
	_, main, _ := strings.Cut(body, "<main")
	for _, field := range hidden.FindAllStringSubmatch(main, -1) {
		form.Add(field[1], strings.ReplaceAll(field[2], "&amp;", "&"))
	}
	if status, header, body := p.post(c.URL+"/ui/keys/revoke", form); status != http.StatusSeeOther || header.Get("Location") != "/ui/keys?org=acme&search=batch" {
		t.Fatalf("the confirmed form: %d to %q: %s", status, header.Get("Location"), body)
	}
	if _, _, list := p.get(c.URL + "/ui/keys?org=acme&search=batch"); !strings.Contains(list, "Key batch is revoked.") || !strings.Contains(list, `<span class="status bad">`) {
		t.Errorf("the key after the confirmation: %s", list)
	}
	for path, form := range map[string]url.Values{
		"keys/rotate": {"id": {"batch"}}, "limits/reset": {"scope": {"key:ann"}}, "spend/holds/release": {"id": {"h1"}, "reason": {"x"}},
	} {
		form.Set("org", "acme")
		if status, _, body := p.post(c.URL+"/ui/"+path, form); status != http.StatusOK || !strings.Contains(body, `name="confirmed" value="yes"`) {
			t.Errorf("%s: %d %s, want a confirmation", path, status, body)
		}
		if status, _, _ := c.as(t, "vera").post(c.URL+"/ui/"+path, form); status != http.StatusForbidden {
			t.Errorf("%s as a viewer: %d, want 403 before any confirmation", path, status)
		}
	}
}

// A form that fails is shown again, with the fault and the typed fields.
func TestFormsKeepWhatWasTyped(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	typed := url.Values{
		"org": {"acme"}, "id": {"batch"}, "team": {"research"}, "owner": {"ann@acme.example"}, "roles": {"viewer"}, "expires": {"2099-01-01"},
		"limit.minute": {"many"}, "budget.per_hour": {"1.5"}, "back": {"/ui/create-key?org=acme"},
	}
	status, _, body := c.as(t, "root").post(c.URL+"/ui/keys/create", typed)
	if status != http.StatusUnprocessableEntity {
		t.Errorf("a limit that is no number: %d", status)
	}
	for _, want := range []string{
		"limits.minute: expected an integer", `name="id" value="batch"`, `<option value="research" selected>research`, `value="ann@acme.example"`,
		`value="viewer" checked`, `value="2099-01-01"`, `name="limit.minute" inputmode="decimal" value="many"`, `name="budget.per_hour" inputmode="decimal" value="1.5"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the form lacks %s: %s", want, body)
		}
	}
	team := startTeam(t, teamText, miniredis.RunT(t))
	status, _, body = team.caller(t, "lena").post(team.URL+"/tollgate/ui/keys/create", url.Values{"id": {"x"}, "owner": {"someone"}, "roles": {"admin"}, "back": {"/tollgate/ui/create-key"}})
	if status != http.StatusForbidden || !strings.Contains(body, "a lead cannot assign the role admin") || !strings.Contains(body, `value="someone"`) {
		t.Errorf("a key of more rights: %d %s", status, body)
	}
}

// A lead's page lists the key that the lead is logged in with, and no button that can only fail.
func TestLeadsSeeTheirKeysAndWorkingButtons(t *testing.T) {
	t.Parallel()
	c := startTeam(t, strings.NewReplacer(
		"{id: mel, team: ml,", "{id: mel, team: ml, roles: [operator, lead],",
		"- {id: ann, team: research, owner: ann@acme.example,", "- {id: nel, team: research, sha256: SHA256(key_of_nel)}\n      - {id: ann, team: research, owner: ann@acme.example,",
	).Replace(teamText), miniredis.RunT(t))
	lena, mel := c.caller(t, "lena"), c.caller(t, "mel")
	_, _, keys := lena.get(c.URL + "/tollgate/ui/keys")
	if !strings.Contains(keys, `data-label="Key">lena<`) || strings.Contains(keys, "No keys") || strings.Contains(keys, "keys/revoke") || strings.Contains(keys, `data-label="Key">mel<`) {
		t.Errorf("the keys of the team: %s", keys)
	}
	root := &console{Server: httptest.NewServer(c.gateway.AdminHandler())}
	t.Cleanup(root.Close)
	admin := root.as(t, "root")
	for id, roles := range map[string][]string{"weak": {"viewer"}, "strong": {"operator", "lead"}} {
		if status, _, body := admin.post(root.URL+"/ui/keys/create", url.Values{"org": {"acme"}, "id": {id}, "team": {"research"}, "roles": roles, "limit.minute": {"5"}}); status != http.StatusOK {
			t.Fatalf("make %s: %d %s", id, status, body)
		}
	}
	_, _, keys = lena.get(c.URL + "/tollgate/ui/keys")
	for form, want := range map[string][]string{"keys/revoke": {"weak"}, "keys/rotate": {"weak"}} {
		var got []string
		for _, m := range regexp.MustCompile(`action="/tollgate/ui/`+form+`" class="fields[a-z ]*">.*?name="id" value="(\w+)"`).FindAllStringSubmatch(keys, -1) {
			got = append(got, m[1])
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s is offered for %q, want %q", form, got, want)
		}
	}
	for _, key := range []string{"key_of_ann", "key_of_nel", "key_of_lena", "key_of_mel"} {
		if status, answer := c.call(t, http.MethodPost, "/v2/pods", key, threeGPUs); status != http.StatusForbidden {
			t.Fatalf("three GPUs of %s: %d %s", key, status, answer)
		}
	}
	for p, want := range map[*person]int{lena: 1, mel: 0} { // ann's alone: nel's key has no owner, and leads of ml have no grants
		_, _, page := p.get(c.URL + "/tollgate/ui/approvals")
		if got := strings.Count(page, "approvals/grant"); got != want || !strings.Contains(page, "<article") {
			t.Errorf("%d requests can be granted, want %d: %s", got, want, page)
		}
	}
}
