package parity

import (
	"strings"
	"testing"
	"time"
)

const (
	v1Create = `{"name":"a","imageName":"img:1","gpuTypeIds":["NVIDIA L4"]}`
	deploy   = `{"query":"mutation { podFindAndDeployOnDemand(input: {name: \"a\", imageName: \"img:1\", gpuTypeId: \"NVIDIA L4\", cloudType: SECURE}) { id } }"}`
)

// While a brownout lasts, callers of the retired interfaces get a clear error
// and nothing reaches the platform; before and after they are served.
func TestABrownout(t *testing.T) {
	t.Parallel()
	const announced = "2026-11-21T10:01:00Z/2026-11-21T10:02:00Z, 2026-11-28T09:59:00Z/2026-11-28T10:00:00Z"
	eachDoor(t, func(t *testing.T, d *door) {
		legacy := map[string]string{
			"v1":      request("POST", "/v1/pods", "key_research", v1Create),
			"graphql": request("POST", "/graphql", "key_research", deploy),
		}
		served := func(when string) {
			t.Helper()
			for dialect, r := range legacy {
				if a := d.ask(t, r); a.Status >= 300 || strings.Contains(a.Body, "errors") {
					t.Errorf("%s: %s: %d %s, want it served", when, dialect, a.Status, a.Body)
				}
			}
		}
		served("before")
		if a := d.ask(t, legacy["v1"]); a.Header.Get("X-Tollgate-Brownout") != announced {
			t.Errorf("X-Tollgate-Brownout = %q, want %s", a.Header.Get("X-Tollgate-Brownout"), announced)
		}
		d.advance(50 * time.Second) // 10:01:10
		before := len(d.platform.Calls())
		for dialect, want := range map[string]string{
			"v1":      `{"error":"v1 ends soon","message":"v1 ends soon","status":503}`,
			"graphql": `{"errors":[{"message":"v1 ends soon","extensions":{"code":"BROWNOUT","status":503}}]}`,
		} {
			a := d.ask(t, legacy[dialect])
			if a.Status != 503 || a.Body != want {
				t.Errorf("%s: %d %s, want 503 %s", dialect, a.Status, a.Body, want)
			}
			for name, value := range map[string]string{
				"Retry-After": "50", "X-Tollgate-Brownout": announced, "Content-Type": "application/json",
			} {
				if got := a.Header.Get(name); got != value {
					t.Errorf("%s: %s = %q, want %q", dialect, name, got, value)
				}
			}
			if link := a.Header.Get("Link"); !strings.HasPrefix(link, map[string]string{"v1": "</v2/pods>", "graphql": "</v2/openapi.json>"}[dialect]+`; rel="successor-version"`) {
				t.Errorf("%s: Link = %q, want what to call in v2", dialect, link)
			}
			if a.Header.Get("RateLimit") == "" || a.Header.Get("Deprecation") == "" {
				t.Errorf("%s: headers = %v, want limits and migration signals", dialect, a.Header)
			}
		}
		if n := len(d.platform.Calls()) - before; n != 0 {
			t.Errorf("%d refused calls reached the platform", n)
		}
		for target, key := range map[string]string{"/v2/pods": "key_research", "/v1/pods": "key_globex", "/v1/docs": "key_research"} {
			if a := d.ask(t, request("GET", target, key, "")); a.Status != 200 {
				t.Errorf("GET %s by %s: %d %s, want 200", target, key, a.Status, a.Body)
			}
		}
		d.advance(50 * time.Second) // 10:02:00
		served("after")
	}, func(d *door) {
		d.text = strings.Replace(configuration, "    teams: [{id: research}", `    brownouts:
      - {dialects: [v1, graphql], from: 2026-11-21T10:01:00Z, until: 2026-11-21T10:02:00Z, message: v1 ends soon}
      - {dialects: [v1, graphql], daily: 09:59-10:00, weekdays: [sat]}
    teams: [{id: research}`, 1)
	})
}
