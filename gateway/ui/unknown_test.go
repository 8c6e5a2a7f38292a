package ui_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
)

// open is a configuration without admins: nobody has to log in.
const open = `
platform: {base_url: "PLATFORM"}
redis: {embedded: true}
orgs:
  - id: acme
    credential: {env: KEY}
    teams: [{id: research, budget: {per_hour: 5}}]
    idle: {for: 1h}
    policies: [{policy: gpu_count, params: {max_per_pod: 2}}]
`

// Pages report what could not be read as unknown before anything else, and never as nothing. They report a refused configuration and settings that
// require a restart.
func TestUnknownIsNotNothing(t *testing.T) {
	t.Parallel()
	store := miniredis.RunT(t)
	c := start(t, open, store)
	p := c.visitor(t)
	empty := []string{"Nothing needs attention", "No denials in the last 24 hours", "No budgets yet"}
	_, _, before := p.get(c.URL + "/ui/")
	for _, sentence := range empty[1:2] {
		if !strings.Contains(before, sentence) {
			t.Errorf("with the store: no %q in %s", sentence, before)
		}
	}
	if err := c.gateway.Swap(c.config(t, c.text+"\nlisten: 127.0.0.1:0\n")); err != nil {
		t.Fatal(err)
	}
	c.gateway.Rejected(errors.New("no policies at all"))
	store.Close()
	for _, page := range []string{"/ui/", "/ui/gateways"} {
		status, _, body := p.get(c.URL + page)
		_, content, _ := strings.Cut(body, "<h1>")
		unknown, first := strings.Index(content, "Unknown: "), strings.Index(content, "<table")
		if first < 0 {
			first = strings.Index(content, "<h2 id=\"attention\"")
		}
		if status != http.StatusOK || unknown < 0 || unknown > first {
			t.Errorf("%s without the store: %d, unknown parts at %d, the first list at %d", page, status, unknown, first)
		}
		for _, want := range []string{"no policies at all", "listen"} {
			if !strings.Contains(body, want) {
				t.Errorf("%s: no %q in %s", page, want, body)
			}
		}
		for _, sentence := range empty {
			if strings.Contains(body, sentence) {
				t.Errorf("%s without the store says %q", page, sentence)
			}
		}
	}
	if _, _, body := p.get(c.URL + "/ui/policies"); strings.Contains(body, `class="n">0</td>`) || !strings.Contains(body, `class="n">unknown</td>`) {
		t.Errorf("policies without the store: %s, want unknown counts", body)
	}
}

// An organisation that is not configured has no page.
func TestPagesOfAnUnknownOrganisation(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	p := c.as(t, "root")
	for _, page := range pages {
		path, _, _ := strings.Cut(page, "?")
		status, _, body := p.get(c.URL + path + "?org=acmee")
		if status != http.StatusNotFound || !strings.Contains(body, `did you mean &#34;acme&#34;?`) || strings.Contains(body, "<section") {
			t.Errorf("%s: %d %s, want 404 and what was meant", path, status, body)
		}
	}
}
