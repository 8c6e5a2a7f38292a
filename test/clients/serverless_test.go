package clients

import (
	"net/url"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// The gateway and the platform agree on the needed members of a create of an endpoint: no
// type, and beside a template no name and no image.
func TestEndpointBodies(t *testing.T) {
	s := newStack(t, standing())
	host := func(address string) string {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		return u.Host
	}
	const (
		gpu     = `"gpu":{"pools":["ADA_24"]},"workers":{"max":1}`
		scaling = `"scaling":{"type":"QUEUE_DELAY","queueDelay":4}`
		counted = `"scaling":{"type":"REQUEST_COUNT","requestCount":4}`
	)
	for _, tt := range []struct {
		members []string
		status  int
		says    string
	}{
		{[]string{`"templateId":"tplworker1"`, gpu, scaling}, 201, `"type":"QUEUE"`},
		{[]string{`"templateId":"tplworker1"`, `"type":"LOAD_BALANCER"`, gpu, counted}, 201, `"type":"LOAD_BALANCER"`},
		{[]string{`"name":"e"`, `"image":"i"`, gpu, scaling}, 201, `"type":"QUEUE"`},
		{[]string{`"name":"e"`, `"image":"i"`, gpu, counted}, 201, `"requestCount":4`},
		{[]string{`"templateId":"tplworker1"`, scaling}, 400, "gpu"},
		{[]string{`"name":"e"`, gpu, scaling}, 422, "image"},
		{[]string{`"name":"e"`, `"image":"i"`, `"type":"TOPIC"`, gpu, scaling}, 422, "type"},
		{[]string{`"name":"e"`, `"image":"i"`, `"type":"LOAD_BALANCER"`, gpu, scaling}, 422, "scaling"},
		{[]string{`"name":"e"`, `"image":"i"`, `"gpu":{"pools":["ADA_24"]},"workers":{"idleTimeout":5}`, counted}, 400, "idleTimeout"},
	} {
		body := "{" + strings.Join(tt.members, ",") + "}"
		for _, from := range []struct{ name, address, key string }{
			{"gateway", s.gateway, key}, {"platform", s.platform.URL, platform.DefaultKey},
		} {
			got := world.Ask(t, host(from.address), world.Request("POST", "/v2/serverless", from.key, body))
			if got.Status != tt.status || !strings.Contains(got.Body, tt.says) {
				t.Errorf("%s: %s: got %d %s, want %d with %s", from.name, body, got.Status, got.Body, tt.status, tt.says)
			}
		}
	}
	// The gateway fills in the members that the platform requires and it knows.
	body := `{"templateId":"tplworker1",` + gpu + "}"
	if got := world.Ask(t, host(s.platform.URL), world.Request("POST", "/v2/serverless", platform.DefaultKey, body)); got.Status != 422 || !strings.Contains(got.Body, "scaling") {
		t.Errorf("platform: %s: got %d %s, want 422 with scaling", body, got.Status, got.Body)
	}
	if got := world.Ask(t, host(s.gateway), world.Request("POST", "/v2/serverless", key, body)); got.Status != 201 || !strings.Contains(got.Body, `"queueDelay":4`) {
		t.Errorf("gateway: %s: got %d %s, want 201 with queueDelay 4", body, got.Status, got.Body)
	}
}
