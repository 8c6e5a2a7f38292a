package parity

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// What clients spell in their own way has the same status at the gateway as at the platform.
func TestSpellings(t *testing.T) {
	t.Parallel()
	const pod, endpoint = `{"name":"p","image":"i:1","gpu":{"id":"NVIDIA L4"},`, `{"templateId":"T"`
	eachDoor(t, func(t *testing.T, d *door) {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
		template := fmt.Sprint(field(t, d.ask(t, request("POST", "/v2/templates", "key_platform", `{"name":"t","image":"i:1","serverless":true}`)).Body, "id"))
		for _, tt := range []struct {
			method, target, body string
			status               int
		}{
			{"GET", "/v2/pods?includeClusterPods=True", "", 200},
			{"GET", "/v2/pods?includeClusterPods=1", "", 200},
			{"GET", "/v2/pods?includeClusterPods=False", "", 200},
			{"GET", "/v2/catalog/datacenters?globalNetwork=TRUE", "", 200},
			{"GET", "/v2/pods?includeClusterPods=yes", "", 422},
			{"POST", "/v2/pods", pod + `"args":"{}","cmd":[]}`, 201},
			{"POST", "/v2/pods", pod + `"args":"{}","cmd":[],"entrypoint":[]}`, 201},
			{"POST", "/v2/pods", pod + `"args":" { } ","cmd":[]}`, 201},
			{"POST", "/v2/pods", pod + `"args":"{}","cmd":["x"]}`, 400},
			{"POST", "/v2/serverless", endpoint + `}`, 422},
			{"POST", "/v2/serverless", endpoint + `,"scaling":{"type":"QUEUE_DELAY","queueDelay":4}}`, 400},
			{"POST", "/v2/serverless", endpoint + `,"scaling":{"type":"QUEUE_DELAY","queueDelay":4},"gpu":{"pools":["ADA_24"]}}`, 201},
		} {
			body := strings.ReplaceAll(tt.body, `"T"`, `"`+template+`"`)
			req, err := http.NewRequestWithContext(t.Context(), tt.method, d.platform.URL+tt.target, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer pk-acme-"+canary)
			if body != "" {
				req.Header.Set("Content-Type", "application/json")
			}
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			a := d.ask(t, request(tt.method, tt.target, "key_platform", body))
			if res.StatusCode != tt.status || a.Status != tt.status {
				t.Errorf("%s %s %s: the platform answers %d, the gateway %d %s, want %d", tt.method, tt.target, body, res.StatusCode, a.Status, a.Body, tt.status)
			}
		}
	})
}
