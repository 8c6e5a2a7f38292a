package nextstate_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/policies/nextstate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func decode(t *testing.T, s string) map[string]any {
	t.Helper()
	if s == "" {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return v
}

// canonical is JSON with sorted members, or the error.
func canonical(v map[string]any, err error) string {
	if err != nil {
		f, ok := errors.AsType[*nextstate.Fault](err)
		if !ok {
			return "error: " + err.Error()
		}
		return f.Error() + " [" + string(rune('0'+f.Status/100)) + "xx]"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func same(t *testing.T, want, got string) {
	t.Helper()
	if strings.HasPrefix(want, "{") {
		want = canonical(decode(t, want), nil)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("state after (-want +got):\n%s", diff)
	}
}

func TestCreate(t *testing.T) {
	const podTemplate = `{"id":"t1","serverless":false,"image":"t:1","args":"run","disk":40,"ports":["22/tcp"],
		"env":{"A":"t","B":"t"},"registry":"r1","mounts":{"persistent":{"size":20,"path":"/w"}},
		"startSsh":false,"startJupyter":true,"allowedCudaVersions":["12.4"]}`
	const serverlessTemplate = `{"id":"t2","serverless":true,"image":"t:2","env":{"A":"t"},"startSsh":true,"startJupyter":true,
		"mounts":{},"allowedCudaVersions":["12.4"]}`
	tests := []struct{ name, op, body, template, want string }{
		{
			"pod", "createPod", `{"name":"a","image":"i","gpu":{"id":"L4"}}`, "",
			`{"name":"a","image":"i","gpu":{"id":"L4","count":1},"cloud":"SECURE","globalNetworking":false,"startJupyter":false,"startSsh":false}`,
		},
		{
			"pod says it all", "createPod", `{"gpu":{"id":"L4","count":2},"cloud":"COMMUNITY","globalNetworking":true,"startJupyter":true,"startSsh":true}`, "",
			`{"gpu":{"id":"L4","count":2},"cloud":"COMMUNITY","globalNetworking":true,"startJupyter":true,"startSsh":true}`,
		},
		{
			"pod from a template", "createPod", `{"name":"a","templateId":"t1","gpu":{"id":"L4"},"env":{"B":"mine","C":"mine"}}`, podTemplate,
			`{"name":"a","templateId":"t1","image":"t:1","args":"run","cmd":["run"],"entrypoint":[],"disk":40,"ports":["22/tcp"],"registry":"r1","env":{"A":"t","B":"mine","C":"mine"},
			"mounts":{"persistent":{"size":20,"path":"/w"}},"startSsh":false,"startJupyter":true,"cloud":"SECURE","globalNetworking":false,
			"gpu":{"id":"L4","count":1,"allowedCudaVersions":["12.4"]}}`,
		},
		{
			"pod against a template", "createPod", `{"templateId":"t1","image":"i","cmd":["x"],"disk":1,"ports":[],"registry":null,"env":{"A":"m","B":"m"},
			"mounts":{"network":[{"volumeId":"v","path":"/v"}]},"startSsh":true,"startJupyter":false,"gpu":{"id":"L4","count":1,"minCudaVersion":"12.1"}}`, podTemplate,
			`{"templateId":"t1","image":"i","args":"{\"cmd\":[\"x\"]}","cmd":["x"],"entrypoint":[],"disk":1,"ports":[],"registry":null,"env":{"A":"m","B":"m"},"mounts":{"network":[{"volumeId":"v","path":"/v"}]},
			"startSsh":true,"startJupyter":false,"gpu":{"id":"L4","count":1,"minCudaVersion":"12.1"},"cloud":"SECURE","globalNetworking":false}`,
		},
		{
			"cpu pod from a template", "createPod", `{"templateId":"t1","cpu":{"id":"cpu5c","vcpuCount":2}}`, podTemplate,
			`{"templateId":"t1","cpu":{"id":"cpu5c","vcpuCount":2},"image":"t:1","args":"run","cmd":["run"],"entrypoint":[],"disk":40,"ports":["22/tcp"],"registry":"r1","env":{"A":"t","B":"t"},
			"startSsh":false,"startJupyter":true,"cloud":"SECURE","globalNetworking":false}`,
		},
		{
			"template without flags starts both", "createPod", `{"templateId":"t","gpu":{"id":"L4"}}`, `{"id":"t","image":"x"}`,
			`{"templateId":"t","image":"x","gpu":{"id":"L4","count":1},"cloud":"SECURE","globalNetworking":false,"startSsh":true,"startJupyter":true}`,
		},
		{
			"empty mounts keep the template's", "createPod", `{"templateId":"t1","image":"i","args":"","disk":1,"ports":[],"registry":"r","env":{},"mounts":{},"startSsh":true,"startJupyter":true,"gpu":{"id":"L4"}}`, podTemplate,
			`{"templateId":"t1","image":"i","args":"","cmd":[],"entrypoint":[],"disk":1,"ports":[],"registry":"r","env":{"A":"t","B":"t"},"mounts":{"persistent":{"size":20,"path":"/w"}},
			"startSsh":true,"startJupyter":true,"cloud":"SECURE","globalNetworking":false,"gpu":{"id":"L4","count":1,"allowedCudaVersions":["12.4"]}}`,
		},
		{"pod from a serverless template", "createPod", `{"templateId":"t2"}`, serverlessTemplate, "/templateId: a serverless template cannot be used for pods or clusters [4xx]"},
		{"template not read", "createPod", `{"templateId":"t2"}`, "", `error: template "t2" has not been read`},
		{"env of a wrong type", "createPod", `{"templateId":"t1","env":[]}`, podTemplate, "/env: must be an object [4xx]"},
		{
			"endpoint", "createEndpoint", `{"type":"QUEUE","scaling":{"type":"QUEUE_DELAY","queueDelay":4},"gpu":{"pools":["A"]}}`, "",
			`{"type":"QUEUE","scaling":{"type":"QUEUE_DELAY","queueDelay":4},"gpu":{"pools":["A"],"count":1},"workers":{"min":0,"max":3,"idleTimeout":10},"timeout":300000,"flashboot":"OFF"}`,
		},
		{
			"endpoint by request count", "createEndpoint", `{"type":"QUEUE","scaling":{"type":"REQUEST_COUNT","requestCount":4},"workers":{"min":2},"cpu":[]}`, "",
			`{"type":"QUEUE","scaling":{"type":"REQUEST_COUNT","requestCount":4},"cpu":[],"workers":{"min":2,"max":3},"timeout":300000,"flashboot":"OFF"}`,
		},
		{
			"endpoint of no type", "createEndpoint", `{"scaling":{"type":"REQUEST_COUNT","requestCount":4},"cpu":[]}`, "",
			`{"type":"QUEUE","scaling":{"type":"REQUEST_COUNT","requestCount":4},"cpu":[],"workers":{"min":0,"max":3},"timeout":300000,"flashboot":"OFF"}`,
		},
		{
			"endpoint from a template", "createEndpoint", `{"templateId":"t2","type":"QUEUE","gpu":{"pools":["A"]},"env":{"B":"m"}}`, serverlessTemplate,
			`{"templateId":"t2","type":"QUEUE","image":"t:2","env":{"A":"t","B":"m"},"gpu":{"pools":["A"],"count":1,"allowedCudaVersions":["12.4"]},
			"workers":{"min":0,"max":3,"idleTimeout":10},"timeout":300000,"flashboot":"OFF"}`,
		},
		{"endpoint from a pod template", "createEndpoint", `{"templateId":"t1"}`, podTemplate, "/templateId: a pod template cannot be used to create an endpoint [4xx]"},
		{"cluster", "createCluster", `{"name":"c"}`, "", `{"name":"c","startJupyter":false,"startSsh":false}`},
		{
			"cluster from a template", "createCluster", `{"templateId":"t1","name":"c","startSsh":true}`, podTemplate,
			`{"templateId":"t1","name":"c","image":"t:1","args":"run","cmd":["run"],"entrypoint":[],"disk":40,"ports":["22/tcp"],"registry":"r1","env":{"A":"t","B":"t"},
			"mounts":{"persistent":{"size":20,"path":"/w"}},"startSsh":true,"startJupyter":true}`,
		},
		{"cluster from a serverless template", "createCluster", `{"templateId":"t2"}`, serverlessTemplate, "/templateId: a serverless template cannot be used for pods or clusters [4xx]"},
		{"template", "createTemplate", `{"name":"c","public":true}`, "", `{"name":"c","public":true,"serverless":false,"category":"NVIDIA","startSsh":true,"startJupyter":true}`},
		{"secret", "createSecret", `{"name":"a","value":"v"}`, "", `{"name":"a"}`},
		{"volume", "createNetworkVolume", `{"size":10}`, "", `{"size":10}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body, template := decode(t, tt.body), decode(t, tt.template)
			got := canonical(nextstate.Create(tt.op, body, template))
			same(t, tt.want, got)
			same(t, tt.body, canonical(body, nil)) // untouched
			if template != nil {
				same(t, tt.template, canonical(template, nil))
			}
		})
	}
}

func TestUpdate(t *testing.T) {
	const pod = `{"id":"p1","status":"RUNNING","image":"i:1","args":"old","cmd":["old"],"entrypoint":["sh"],"disk":20,"env":{"A":"1"},"ports":["80/http"],
		"registry":"r1","gpu":{"id":"L4","count":2},"cloud":"SECURE","mounts":{"persistent":{"size":20,"path":"/w"}},"globalNetworking":{"enabled":true,"ip":"10.0.0.1"}}`
	const networked = `{"id":"p2","mounts":{"network":[{"volumeId":"v1","path":"/v"}]}}`
	const endpoint = `{"id":"e1","image":"i:1","workers":{"min":0,"max":1,"idleTimeout":10},"gpu":{"pools":["A"],"excludedTypes":["X"],"count":1,"allowedCudaVersions":[],"minCudaVersion":"12.1"},"env":{"A":"1"}}`
	const cpuEndpoint = `{"id":"e2","gpu":null,"cpu":[{"id":"cpu5c","vcpuCount":2}],"workers":{"min":0,"max":1}}`
	tests := []struct{ name, op, current, body, template, want string }{
		{"nothing", "updatePod", `{"id":"p","image":"i","globalNetworking":{"enabled":false}}`, `{}`, "", `{"id":"p","image":"i","globalNetworking":false}`},
		{
			"members", "updatePod", pod, `{"image":"i:2","env":{"B":"2"},"ports":[],"registry":null,"locked":true}`, "",
			`{"id":"p1","status":"RUNNING","image":"i:2","args":"old","cmd":["old"],"entrypoint":["sh"],"disk":20,"env":{"B":"2"},"ports":[],"registry":null,"locked":true,
			"gpu":{"id":"L4","count":2},"cloud":"SECURE","mounts":{"persistent":{"size":20,"path":"/w"}},"globalNetworking":true}`,
		},
		{"args make cmd stale", "updatePod", `{"args":"old","cmd":["old"],"entrypoint":["sh"]}`, `{"args":"new"}`, "", `{"args":"new","cmd":["new"],"entrypoint":[]}`},
		{"cmd makes args stale", "updatePod", `{"args":"old","cmd":["old"],"entrypoint":["sh"]}`, `{"cmd":["new"]}`, "", `{"args":"{\"entrypoint\":[\"sh\"],\"cmd\":[\"new\"]}","cmd":["new"],"entrypoint":["sh"]}`},
		{
			"template", "updatePod", pod, `{"templateId":"t","env":{"B":"2"},"globalNetworking":false}`,
			`{"id":"t","serverless":false,"image":"t:1","disk":50,"ports":["22/tcp"],"registry":null,"args":"","env":{"A":"t","B":"t"},"mounts":{"persistent":{"size":99,"path":"/t"}}}`,
			`{"id":"p1","templateId":"t","status":"RUNNING","image":"t:1","args":"","cmd":[],"entrypoint":[],"disk":50,"env":{"A":"t","B":"2"},"ports":["22/tcp"],"registry":null,
			"gpu":{"id":"L4","count":2},"cloud":"SECURE","mounts":{"persistent":{"size":20,"path":"/w"}},"globalNetworking":false}`,
		},
		{"serverless template", "updatePod", pod, `{"templateId":"t"}`, `{"serverless":true}`, "/templateId: a serverless template cannot be applied to a pod [4xx]"},
		{"empty template id", "updatePod", pod, `{"templateId":""}`, "", "/templateId: template id is empty [4xx]"},
		{"cluster member", "updatePod", `{"cluster":{"id":"c","rank":0}}`, `{"name":"x"}`, "", "the pod is a member of a cluster [4xx]"},
		{"mount resized", "updatePod", `{"mounts":{"persistent":{"size":20,"path":"/w"}}}`, `{"mounts":{"persistent":{"size":500,"path":"/x"}}}`, "", `{"mounts":{"persistent":{"size":500,"path":"/x"}}}`},
		{"mounts empty", "updatePod", networked, `{"mounts":{}}`, "", networked},
		{"mount path", "updatePod", networked, `{"mounts":{"network":[{"volumeId":"v1","path":"/x"}]}}`, "", `{"id":"p2","mounts":{"network":[{"volumeId":"v1","path":"/x"}]}}`},
		{"mount other volume", "updatePod", networked, `{"mounts":{"network":[{"volumeId":"v2","path":"/x"}]}}`, "", "/mounts/network/0/volumeId: the network volume of a pod cannot be changed [4xx]"},
		{"mount emptied", "updatePod", networked, `{"mounts":{"network":[]}}`, "", "/mounts/network: exactly one network volume is required [4xx]"},
		{"mount kind added", "updatePod", networked, `{"mounts":{"persistent":{"size":20,"path":"/w"}}}`, "", "/mounts/persistent: the pod was created without a persistent mount [4xx]"},
		{"network added", "updatePod", `{"mounts":{}}`, `{"mounts":{"network":[{"volumeId":"v2","path":"/x"}]}}`, "", "/mounts/network: the pod was created without a network volume [4xx]"},
		{"workers one by one", "updateEndpoint", cpuEndpoint, `{"workers":{"max":500}}`, "", `{"id":"e2","gpu":null,"cpu":[{"id":"cpu5c","vcpuCount":2}],"workers":{"min":0,"max":500}}`},
		{"cpu replaced", "updateEndpoint", cpuEndpoint, `{"cpu":[{"id":"cpu3g","vcpuCount":32}]}`, "", `{"id":"e2","gpu":null,"cpu":[{"id":"cpu3g","vcpuCount":32}],"workers":{"min":0,"max":1}}`},
		{
			"pools clear exclusions", "updateEndpoint", endpoint, `{"gpu":{"pools":["B"]}}`, "",
			`{"id":"e1","image":"i:1","env":{"A":"1"},"workers":{"min":0,"max":1,"idleTimeout":10},"gpu":{"pools":["B"],"count":1,"allowedCudaVersions":[],"minCudaVersion":"12.1"}}`,
		},
		{
			"count keeps pools and exclusions", "updateEndpoint", endpoint, `{"gpu":{"count":8,"minCudaVersion":""}}`, "",
			`{"id":"e1","image":"i:1","env":{"A":"1"},"workers":{"min":0,"max":1,"idleTimeout":10},"gpu":{"pools":["A"],"excludedTypes":["X"],"count":8,"allowedCudaVersions":[],"minCudaVersion":null}}`,
		},
		{"exclusions without pools", "updateEndpoint", endpoint, `{"gpu":{"excludedTypes":["Y"]}}`, "", "/gpu/excludedTypes: excludedTypes requires pools [4xx]"},
		{"gpu on a cpu endpoint", "updateEndpoint", cpuEndpoint, `{"gpu":{"pools":["A"]}}`, "", "/gpu: the endpoint runs on CPUs [4xx]"},
		{"cpu on a gpu endpoint", "updateEndpoint", endpoint, `{"cpu":[]}`, "", "/cpu: the endpoint runs on GPUs [4xx]"},
		{"both", "updateEndpoint", endpoint, `{"cpu":[],"gpu":{}}`, "", "/cpu: an endpoint cannot have both gpu and cpu [4xx]"},
		{"pod template on an endpoint", "updateEndpoint", endpoint, `{"templateId":"t"}`, `{"serverless":false}`, "/templateId: a pod template cannot be applied to an endpoint [4xx]"},
		{
			"template record", "updateTemplate", `{"id":"t","image":"i","env":{"A":"1"},"mounts":{"persistent":{"size":20,"path":"/w"}}}`, `{"env":{"B":"2"},"mounts":{}}`, "",
			`{"id":"t","image":"i","env":{"B":"2"},"mounts":{"persistent":{"size":20,"path":"/w"}}}`,
		},
		{"volume grows", "updateNetworkVolume", `{"id":"v","size":10,"name":"a"}`, `{"size":4096}`, "", `{"id":"v","size":4096,"name":"a"}`},
		{"volume shrinks", "updateNetworkVolume", `{"id":"v","size":10}`, `{"size":9}`, "", "/size: a volume cannot shrink from 10 GB to 9 GB [4xx]"},
		{"volume of text", "updateNetworkVolume", `{"id":"v","size":10}`, `{"size":"90"}`, "", "/size: must be a whole number [4xx]"},
		{
			"secret", "updateSecret", `{"id":"s","name":"a","description":"d","createdAt":"2026-01-01T00:00:00Z"}`, `{"value":"v","description":"e"}`, "",
			`{"id":"s","name":"a","description":"e","createdAt":"2026-01-01T00:00:00Z"}`,
		},
		{"cluster", "updateCluster", `{"id":"c","name":"a","compute":{}}`, `{"name":"b"}`, "", `{"id":"c","name":"b","compute":{}}`},
		{"keys", "updateSshKeys", "", `{"keys":["ssh-ed25519 A"]}`, "", `{"keys":["ssh-ed25519 A"]}`},
		{"nothing read", "updatePod", "", `{"name":"x"}`, "", "error: update updatePod: the current resource is missing"},
		{"no update", "createPod", `{}`, `{}`, "", "error: update createPod is not supported"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			current, body := decode(t, tt.current), decode(t, tt.body)
			got := canonical(nextstate.Update(tt.op, current, body, decode(t, tt.template)))
			same(t, tt.want, got)
			if current != nil {
				same(t, tt.current, canonical(current, nil)) // untouched
			}
			same(t, tt.body, canonical(body, nil))
		})
	}
}

func TestAction(t *testing.T) {
	const pod = `{"id":"p","status":"EXITED","gpu":{"id":"L4","count":8},"globalNetworking":{"enabled":false}}`
	for action, want := range map[string]string{
		"start":     `{"id":"p","status":"RUNNING","gpu":{"id":"L4","count":8},"globalNetworking":false}`,
		"restart":   `{"id":"p","status":"RUNNING","gpu":{"id":"L4","count":8},"globalNetworking":false}`,
		"stop":      `{"id":"p","status":"EXITED","gpu":{"id":"L4","count":8},"globalNetworking":false}`,
		"terminate": `{"id":"p","status":"TERMINATED","gpu":{"id":"L4","count":8},"globalNetworking":false}`,
		"reset":     `/action: unknown action "reset" [4xx]`,
	} {
		t.Run(action, func(t *testing.T) {
			same(t, want, canonical(nextstate.Action(decode(t, pod), action)))
		})
	}
	same(t, "error: action start: the current pod is missing", canonical(nextstate.Action(nil, "start")))
}

func TestNeedsOf(t *testing.T) {
	tests := []struct {
		op, body string
		want     nextstate.Needs
	}{
		{"createPod", `{"templateId":"t"}`, nextstate.Needs{Template: "t"}},
		{"createPod", `{}`, nextstate.Needs{}},
		{"updateEndpoint", `{"templateId":"t"}`, nextstate.Needs{Current: true, Template: "t"}},
		{"podAction", `{"action":"start"}`, nextstate.Needs{Current: true}},
		{"createCluster", `{"templateId":"t"}`, nextstate.Needs{Template: "t"}},
		{"listPods", "", nextstate.Needs{}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, nextstate.NeedsOf(tt.op, decode(t, tt.body))); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tt.op, tt.body, diff)
		}
	}
}
