package parity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A new endpoint may leave out how it scales, and its type; what leaves for the platform
// says both.
func TestAnEndpointWithoutScaling(t *testing.T) {
	t.Parallel()
	byDelay := map[string]any{"type": "QUEUE_DELAY", "queueDelay": 4.0}
	byCount := map[string]any{"type": "REQUEST_COUNT", "requestCount": 4.0}
	eachDoor(t, func(t *testing.T, d *door) {
		template := field(t, d.ask(t, request("POST", "/v2/templates", "key_platform", `{"name":"t","image":"i:1","serverless":true}`)).Body, "id").(string)
		for name, tt := range map[string]struct {
			body          string
			status        int
			kind, scaling any
		}{
			"nothing said":      {`{"name":"a","image":"i:1","gpu":{"pools":["ADA_24"]}}`, 201, "QUEUE", byDelay},
			"a queue":           {`{"name":"b","image":"i:1","type":"QUEUE","cpu":[{"id":"cpu3c","vcpuCount":2}]}`, 201, "QUEUE", byDelay},
			"a balancer":        {`{"name":"c","image":"i:1","type":"LOAD_BALANCER","gpu":{"pools":["ADA_24"]}}`, 201, "LOAD_BALANCER", byCount},
			"of a template":     {`{"name":"d","templateId":"` + template + `","gpu":{"pools":["ADA_24"]}}`, 201, nil, byDelay},
			"scaling is given":  {`{"name":"e","image":"i:1","type":"QUEUE","scaling":{"type":"REQUEST_COUNT","requestCount":2},"gpu":{"pools":["ADA_24"]}}`, 201, "QUEUE", map[string]any{"type": "REQUEST_COUNT", "requestCount": 2.0}},
			"scaling is null":   {`{"name":"f","image":"i:1","type":"QUEUE","scaling":null,"gpu":{"pools":["ADA_24"]}}`, 422, nil, nil},
			"a type of its own": {`{"name":"g","image":"i:1","type":"BATCH","gpu":{"pools":["ADA_24"]}}`, 422, nil, nil},
		} {
			a := d.ask(t, request("POST", "/v2/serverless", "key_platform", tt.body))
			if a.Status != tt.status {
				t.Errorf("%s: %d %s, want %d", name, a.Status, a.Body, tt.status)
				continue
			}
			if tt.status != 201 {
				continue
			}
			sent := d.lastBody(t, "createEndpoint")
			if sent["type"] != tt.kind {
				t.Errorf("%s: type %v left, want %v", name, sent["type"], tt.kind)
			}
			if diff := cmp.Diff(tt.scaling, sent["scaling"]); diff != "" {
				t.Errorf("%s: scaling (-want +left):\n%s", name, diff)
			}
		}
	})
}
