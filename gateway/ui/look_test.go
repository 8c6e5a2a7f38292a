package ui_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
)

// The theme and the sidebar are kept in a cookie, before a login and after it, without any script; the rest of a page's state is its address.
func TestLookIsKept(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	p := c.visitor(t)
	if status, header, _ := p.post(c.URL+"/ui/look", url.Values{"theme": {"dark"}, "back": {"/ui/login"}}); status != http.StatusSeeOther || header.Get("Location") != "/ui/" {
		t.Errorf("the theme before a login: %d to %q", status, header.Get("Location"))
	}
	if _, _, page := p.get(c.URL + "/ui/login"); !strings.Contains(page, `<html lang="en" data-theme="dark">`) {
		t.Errorf("the login page: %s", page)
	}
	p.post(c.URL+"/ui/login", url.Values{"token": {"token_vera"}})
	status, header, _ := p.post(c.URL+"/ui/look", url.Values{"sidebar": {"narrow"}, "back": {"/ui/keys?org=acme&search=a"}})
	if status != http.StatusSeeOther || header.Get("Location") != "/ui/keys?org=acme&search=a" || !strings.Contains(header.Get("Set-Cookie"), "tollgate_look=dark.narrow; Path=/ui; Max-Age=31536000; HttpOnly") {
		t.Errorf("the sidebar: %d to %q with %q", status, header.Get("Location"), header.Get("Set-Cookie"))
	}
	_, _, page := p.get(c.URL + "/ui/requests?org=acme&range=7d")
	for _, want := range []string{`data-theme="dark" data-sidebar="narrow"`, `href="/ui/cost?org=acme&amp;range=7d"`, "<title>Requests · acme · tollgate</title>", `aria-label="Time range: Last 7 days, UTC"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s: %s", want, page)
		}
	}
	if status, _, _ := p.post(c.URL+"/ui/look", url.Values{"theme": {"light"}}, "Sec-Fetch-Site", "cross-site"); status != http.StatusForbidden {
		t.Errorf("from another site: %d, want 403", status)
	}
	p.post(c.URL+"/ui/look", url.Values{"theme": {"\"><script>"}, "sidebar": {"wide"}})
	if _, _, page := p.get(c.URL + "/ui/"); strings.Contains(page, "data-sidebar") || !strings.Contains(page, `data-theme="dark"`) {
		t.Error("an unknown theme is kept, or the sidebar is")
	}
}

// Static files are public, and kept for long under the address that names their version.
func TestStaticFiles(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	p := c.visitor(t)
	_, _, page := p.get(c.URL + "/ui/login")
	_, style, _ := strings.Cut(page, `<link rel="stylesheet" href="`)
	style, _, _ = strings.Cut(style, `"`)
	for address, want := range map[string]string{style: "max-age=31536000, immutable", "/ui/style.css": "max-age=300", "/ui/icons.svg?v=old": "max-age=300"} {
		if status, header, _ := p.get(c.URL + address); status != http.StatusOK || header.Get("Cache-Control") != want {
			t.Errorf("%s: %d, Cache-Control %q, want %q", address, status, header.Get("Cache-Control"), want)
		}
	}
}

// A caller stops a pod on a page, after a confirmation, by a call in the caller's own name; a viewer cannot.
func TestCallersStopTheirPods(t *testing.T) {
	t.Parallel()
	withViewer := strings.Replace(teamText, "    keys:\n", "    keys:\n      - {id: vic, team: research, roles: [viewer], sha256: SHA256(key_of_vic)}\n", 1)
	c := startTeam(t, withViewer, miniredis.RunT(t))
	status, answer := c.call(t, http.MethodPost, "/v2/pods", "key_of_ann", `{"name":"small","image":"img:1","gpu":{"id":"NVIDIA L4","count":1}}`)
	_, id, _ := strings.Cut(answer, `"id":"`)
	id, _, _ = strings.Cut(id, `"`)
	if status != http.StatusCreated || id == "" {
		t.Fatalf("a pod: %d %s", status, answer)
	}
	p := c.caller(t, "ann")
	if _, _, page := p.get(c.URL + "/tollgate/ui/resources"); !strings.Contains(page, `action="/tollgate/ui/resources/stop"`) {
		t.Errorf("the pod has no form that stops it: %s", page)
	}
	form := url.Values{"id": {id}, "back": {"/tollgate/ui/resources"}}
	if status, _, page := p.post(c.URL+"/tollgate/ui/resources/stop", form); status != http.StatusOK || !strings.Contains(page, "The pod stops, and its GPU is released.") {
		t.Errorf("the confirmation: %d %s", status, page)
	}
	form.Set("confirmed", "yes")
	if status, _, page := c.caller(t, "vic").post(c.URL+"/tollgate/ui/resources/stop", form); status != http.StatusForbidden && status != http.StatusNotFound {
		t.Errorf("a viewer: %d %s", status, page)
	}
	if status, header, page := p.post(c.URL+"/tollgate/ui/resources/stop", form); status != http.StatusSeeOther || header.Get("Location") != "/tollgate/ui/resources" {
		t.Errorf("the stop: %d to %q: %s", status, header.Get("Location"), page)
	}
	if _, answer := c.call(t, http.MethodGet, "/v2/pods/"+id, "key_of_ann", ""); !strings.Contains(answer, "EXITED") {
		t.Errorf("the pod: %s", answer)
	}
}
