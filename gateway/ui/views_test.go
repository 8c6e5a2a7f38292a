package ui_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
)

// The pages that a lead looks at are not among the lead's decisions, and a refusal is listed with its sentence.
func TestOwnViewsAreNoDecisions(t *testing.T) {
	t.Parallel()
	c := startTeam(t, teamText, miniredis.RunT(t))
	if status, answer := c.call(t, http.MethodPost, "/v2/pods", "key_of_ann", threeGPUs); status != http.StatusForbidden {
		t.Fatalf("three GPUs: %d %s", status, answer)
	}
	lena := c.caller(t, "lena")
	for range 3 {
		for _, page := range teamPages {
			lena.get(c.URL + page)
		}
		lena.get(c.URL + "/tollgate/ui/requests/01NOSUCHDECISION")
	}
	_, _, body := lena.get(c.URL + "/tollgate/ui/requests")
	if rows := strings.Count(body, `<tr class="linked">`); rows != 1 || strings.Contains(body, "self.") {
		t.Errorf("%d decisions, want the refused call alone: %s", rows, body)
	}
	if want := ">gpu_count: 3 GPUs"; !strings.Contains(body, want) {
		t.Errorf("no %q in %s", want, body)
	}
}

// Browsers ask for an icon by themselves. They get one, and no attempt of their address is lost.
func TestIconsAreNoAttempts(t *testing.T) {
	t.Parallel()
	c := startTeam(t, teamText, miniredis.RunT(t))
	p := c.visitor(t)
	for range 60 {
		if status, header, _ := p.get(c.URL + "/favicon.ico"); status != http.StatusOK || header.Get("Content-Type") != "image/svg+xml" {
			t.Fatalf("the icon: %d %s", status, header.Get("Content-Type"))
		}
	}
	if status, _ := c.call(t, http.MethodGet, "/v2/pods", "key_of_an", ""); status != http.StatusUnauthorized {
		t.Errorf("a key that is mistyped: %d, want 401", status)
	}
	_, _, body := p.get(c.URL + "/tollgate/ui/login")
	if !strings.Contains(body, `<link rel="icon" href="/tollgate/ui/icon.svg"`) {
		t.Errorf("the page names no icon: %s", body)
	}
}
