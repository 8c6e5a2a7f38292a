package parity

import (
	"fmt"
	"strings"
	"testing"
)

// lowering are the settings of an organisation under which calls that lower cost must pass while the
// store is away: the default, the strictest failure policy, and a budget.
var lowering = map[string]string{
	"default": "",
	"closed":  "    failure: {read: closed, write: closed}\n",
	"local":   "    failure: {read: local, write: local}\n",
	"budget":  "    budget: {gpus: 64, per_hour: 100}\n",
}

// While the store is away or full, no call that lowers cost is refused, in any dialect and at
// either door; calls that raise cost are.
func TestWithoutTheStoreCostIsLowered(t *testing.T) {
	for name, settings := range lowering {
		t.Run(name, func(t *testing.T) {
			for how, breakStore := range map[string]func(d *door){
				"down": func(d *door) { d.redis.Close() },
				"full": func(d *door) { d.redis.SetError("OOM command not allowed when used memory > 'maxmemory'.") },
			} {
				t.Run(how, func(t *testing.T) {
					eachDoor(t, func(t *testing.T, d *door) { lowerCost(t, d, name != "local", breakStore) }, func(d *door) {
						d.text = strings.Replace(d.text, "    credential: {env: ACME}\n", "    credential: {env: ACME}\n"+settings, 1)
					})
				})
			}
		})
	}
}

func lowerCost(t *testing.T, d *door, refuses bool, breakStore func(d *door)) {
	t.Helper()
	made := func(path, body string) string { return fmt.Sprint(d.asPlatform(t, "POST", path, body)["id"]) }
	pods := make([]string, 8)
	for i := range pods {
		pods[i] = made("/v2/pods", `{"name":"p","image":"i:1","gpu":{"id":"NVIDIA L4"}}`)
	}
	endpoints := make([]string, 3)
	for i := range endpoints {
		endpoints[i] = made("/v2/serverless",
			`{"name":"e","type":"QUEUE","image":"i:1","gpu":{"pools":["ADA_24"]},"workers":{"min":0,"max":3},"scaling":{"type":"QUEUE_DELAY","queueDelay":4}}`)
	}
	volume := made("/v2/network-volumes", `{"name":"v","size":10,"dataCenter":"EU-RO-1"}`)
	d.ask(t, request("GET", "/v2/pods", "key_platform", ""))
	breakStore(d)

	graphQL := func(text string) string {
		return request("POST", "/graphql", "key_platform", `{"query": "mutation { `+strings.ReplaceAll(text, `"`, `\"`)+` }"}`)
	}
	for _, raw := range []string{
		request("POST", "/v2/pods/"+pods[0]+"/action", "key_platform", `{"action":"stop"}`),
		request("DELETE", "/v2/pods/"+pods[1], "key_platform", ""),
		request("POST", "/v2/pods/"+pods[2]+"/action", "key_platform", `{"action":"terminate"}`),
		request("POST", "/v1/pods/"+pods[3]+"/stop", "key_platform", ""),
		request("DELETE", "/v1/pods/"+pods[4], "key_platform", ""),
		graphQL(`podStop(input: {podId: "` + pods[5] + `"}) { id }`),
		graphQL(`podTerminate(input: {podId: "` + pods[6] + `"})`),
		request("PATCH", "/v2/serverless/"+endpoints[0], "key_platform", `{"workers":{"min":0,"max":1}}`),
		request("PATCH", "/v1/endpoints/"+endpoints[1], "key_platform", `{"workersMax":1}`),
		request("DELETE", "/v2/serverless/"+endpoints[1], "key_platform", ""),
		graphQL(`deleteEndpoint(id: "` + endpoints[2] + `")`),
		request("DELETE", "/v2/network-volumes/"+volume, "key_platform", ""),
	} {
		a := d.ask(t, raw)
		if a.Status >= 300 || strings.Contains(a.Body, `"errors"`) {
			line, _, _ := strings.Cut(raw, "\r\n")
			t.Errorf("%s %s: %d %s, want it carried out", line, raw[strings.LastIndex(raw, "\n")+1:], a.Status, a.Body)
		}
	}
	if !refuses {
		return
	}
	for _, raw := range []string{
		request("POST", "/v2/pods", "key_platform", pod4090),
		request("POST", "/v2/pods/"+pods[0]+"/action", "key_platform", `{"action":"start"}`),
		request("PATCH", "/v2/serverless/"+endpoints[0], "key_platform", `{"workers":{"min":0,"max":2}}`),
		request("POST", "/v1/pods", "key_platform", `{"name":"a","imageName":"i:1","gpuTypeIds":["NVIDIA L4"]}`),
		request("POST", "/v1/pods/"+pods[3]+"/start", "key_platform", ""),
		graphQL(`podResume(input: {podId: "` + pods[5] + `", gpuCount: 1}) { id }`),
		request("PATCH", "/v2/pods/"+pods[7], "key_platform", `{"name":"q"}`),
	} {
		if a := d.ask(t, raw); a.Status != 503 && !strings.Contains(a.Body, `"status":503`) {
			line, _, _ := strings.Cut(raw, "\r\n")
			t.Errorf("%s: %d %s, want 503", line, a.Status, a.Body)
		}
	}
}
