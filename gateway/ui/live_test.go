package ui_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
)

// pod asks for a pod with some GPUs.
func (c *console) pod(t *testing.T, gpus string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/v2/pods", strings.NewReader(`{"name":"x","image":"i:1","gpu":{"id":"NVIDIA L4","count":`+gpus+`}}`))
	r.Header.Set("Authorization", "Bearer key_of_ann")
	r.Header.Set("Content-Type", "application/json")
	c.gateway.Handler().ServeHTTP(httptest.NewRecorder(), r)
}

// follow opens the stream of a page, and returns a function that waits for the next line that begins so.
func (p *person) follow(address string) func(prefix string) string {
	p.tb.Helper()
	ctx, cancel := context.WithCancel(p.tb.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		p.tb.Fatal(err)
	}
	res, err := p.http.Do(r)
	if err != nil {
		p.tb.Fatal(err)
	}
	p.tb.Cleanup(func() {
		cancel()
		_ = res.Body.Close()
	})
	if kind := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || kind != "text/event-stream" || res.Header.Get("Cache-Control") != "no-store" {
		p.tb.Fatalf("%s: %d %q", address, res.StatusCode, kind)
	}
	lines := bufio.NewScanner(res.Body)
	return func(prefix string) string {
		p.tb.Helper()
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), prefix) {
				return lines.Text()
			}
		}
		p.tb.Fatalf("the stream ended without %q: %v", prefix, lines.Err())
		return ""
	}
}

// The page of decisions names its stream, which has the decisions that the filter of the page selects, says which policy refused, and ends with the session.
func TestLiveDecisions(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	p := c.as(t, "bond")
	_, _, page := p.get(c.URL + "/ui/requests?refused=true&key=ann&since=24h")
	const address = "/ui/requests/live?key=ann&org=acme&refused=true"
	if !strings.Contains(page, `data-live="`+strings.ReplaceAll(address, "&", "&amp;")+`"`) {
		t.Errorf("the page does not name %s: %s", address, page)
	}
	if _, _, older := p.get(c.URL + "/ui/requests?before=2026-01-01"); strings.Contains(older, "data-live") || strings.Contains(older, "live.js") {
		t.Error("a page of older decisions is live")
	}
	next := p.follow(c.URL + address)
	next(": open")
	c.pod(t, "1")
	c.pod(t, "3")
	if got := next("data: "); !strings.Contains(got, `"verdict":"refused"`) || !strings.Contains(got, `"reason":"gpu_count: 3 GPUs`) {
		t.Errorf("the first event: %s", got)
	}
	_, _, page = p.get(c.URL + "/ui/requests?refused=true")
	if !strings.Contains(page, `gpu_count: 3 GPUs per pod exceed the limit of 2</td>`) {
		t.Errorf("the page does not say which policy refused: %s", page)
	}
	if _, _, first := p.get(c.URL + "/ui/requests?limit=1"); !strings.Contains(first, `>Next</a>`) {
		t.Error("a full list does not lead to older decisions")
	}
	p.post(c.URL+"/ui/logout", nil)
	if got := next("data: "); !strings.Contains(got, "token is no longer valid") {
		t.Errorf("after the logout: %s", got)
	}
}

// The stream is for those who may ask the row, about organisations within reach.
func TestLiveDecisionsOfOthers(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	if status, header, _ := c.visitor(t).get(c.URL + "/ui/requests/live"); status != http.StatusSeeOther || !strings.HasPrefix(header.Get("Location"), "/ui/login") {
		t.Errorf("without a session: %d", status)
	}
	if status, _, _ := c.as(t, "bond").get(c.URL + "/ui/requests/live?" + url.Values{"org": {"globex"}}.Encode()); status != http.StatusForbidden {
		t.Errorf("of another organisation: %d, want 403", status)
	}
	if status, _, _ := c.as(t, "vera").get(c.URL + "/ui/requests/live?team=nobody"); status != http.StatusNotFound {
		t.Errorf("of a team that there is not: %d, want 404", status)
	}
}
