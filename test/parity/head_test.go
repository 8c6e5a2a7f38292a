package parity

import (
	"net/http"
	"strings"
	"testing"
)

// A HEAD is answered as its GET, without the body; logs and streams have none, and Envoy,
// which would send it to the platform as it is, is told so.
func TestHead(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		pod := d.rented(t, podL4)
		for target, want := range map[string]int{
			"/v2/pods": 200, "/v2/pods/" + pod: 200, "/v2/pods/nothing": 404, "/v1/pods": 200, "/v1/pods/" + pod: 200, "/v2/openapi.json": 200, "/docs": 200, "/docs/access": 200,
			"/v2/pods/" + pod + "/logs": 405, "/v2/e1/stream/j1": 405, "/v2/pods/" + pod + "/action": 405, "/graphql": 405, "/v2/notebooks": 404,
		} {
			if d.name == "envoy" && (want == 200 || target == "/v2/pods/nothing") {
				want = 405
			}
			calls := len(d.platform.Calls())
			head := d.ask(t, request("HEAD", target, "key_research", ""))
			if head.Status != want || head.Body != "" {
				t.Errorf("HEAD %s: %d %q, want %d and no body", target, head.Status, head.Body, want)
			}
			if want != http.StatusOK {
				continue
			}
			get := d.ask(t, request("GET", target, "key_research", ""))
			if get.Status != want || get.Header.Get("Content-Type") != head.Header.Get("Content-Type") {
				t.Errorf("HEAD %s: %v, GET: %d %v", target, head.Header, get.Status, get.Header)
			}
			for _, c := range d.platform.Calls()[calls:] {
				if c.Method != http.MethodGet {
					t.Errorf("HEAD %s: the platform was asked %s %s, want GET", target, c.Method, c.Path)
				}
			}
		}
		if a := d.ask(t, request("HEAD", "/v2/pods", "key_nowhere", "")); a.Status != 401 {
			t.Errorf("a stranger's HEAD: %d, want 401", a.Status)
		}
	}, func(d *door) {
		d.text = strings.Replace(d.text, `base_url: "PLATFORM"`, `base_url: "PLATFORM", run_url: "`+d.platform.RunURL+`"`, 1)
	})
}
