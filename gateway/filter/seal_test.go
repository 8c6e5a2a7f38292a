package filter

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/policies/nextstate"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	v, err := strictjson.DecodeLenient([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		t.Fatalf("%s is no object", text)
	}
	return m
}

// The sent body leads, without the template, to the state that was judged with
// it, and is valid by itself.
func TestPinnedBodiesLeadToTheStateJudged(t *testing.T) {
	const pod = `{"id":"t1","name":"t","serverless":false,"public":false,"image":"t:1","args":"run it","cmd":["run","it"],"entrypoint":[],"disk":40,
		"ports":["22/tcp"],"env":{"A":"t","B":"t"},"registry":"r1","mounts":{"persistent":{"size":20,"path":"/w"}},"startSsh":true,
		"startJupyter":false,"allowedCudaVersions":["12.4"],"category":"NVIDIA"}`
	const bare = `{"id":"t2","name":"t","serverless":false,"public":true,"image":"t:2","args":"","cmd":[],"entrypoint":[],"disk":20,
		"ports":[],"env":{},"registry":null,"mounts":{},"startSsh":true,"startJupyter":true,"allowedCudaVersions":[],"category":"NVIDIA"}`
	serverless := strings.Replace(pod, `"serverless":false`, `"serverless":true`, 1)
	api, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	const current = `{"id":"p1","name":"p","status":"RUNNING","image":"old","args":"old","disk":10,"ports":[],"env":{"OLD":"1"},"registry":"r0","mounts":{},
		"gpu":{"id":"NVIDIA L4","count":1},"cloud":"SECURE","locked":false,"globalNetworking":{"enabled":false}}`
	for _, tc := range []struct{ name, op, body, template, current string }{
		{"pod", "createPod", `{"name":"a","templateId":"t1","gpu":{"id":"NVIDIA L4"}}`, pod, ""},
		{"pod with its own words", "createPod", `{"name":"a","templateId":"t1","image":"mine","cmd":["x"],"env":{"A":"m"},"disk":5,"ports":[],
			"registry":null,"startSsh":false,"gpu":{"id":"NVIDIA L4","minCudaVersion":"12.1"},"mounts":{"network":[{"volumeId":"v1","path":"/v"}]}}`, pod, ""},
		{"half a command", "createPod", `{"name":"a","templateId":"t1","entrypoint":["sh"],"gpu":{"id":"NVIDIA L4"}}`, pod, ""},
		{"half a command changed", "updatePod", `{"templateId":"t1","entrypoint":["sh"]}`, pod, current},
		{"a half cleared", "updatePod", `{"templateId":"t1","cmd":[]}`, pod, current},
		{"cpu pod", "createPod", `{"name":"a","templateId":"t1","cpu":{"id":"cpu5c","vcpuCount":2}}`, pod, ""},
		{"pod of a bare template", "createPod", `{"name":"a","templateId":"t2","gpu":{"id":"NVIDIA L4"},"mounts":{}}`, bare, ""},
		{"endpoint", "createEndpoint", `{"name":"e","type":"QUEUE","templateId":"t1","gpu":{"pools":["ADA_24"]},"scaling":{"type":"QUEUE_DELAY","queueDelay":4}}`, serverless, ""},
		{"changed pod", "updatePod", `{"templateId":"t1","env":{"C":"m"}}`, pod, current},
		{"pod changed to a bare template", "updatePod", `{"templateId":"t2","name":"n"}`, bare, current},
	} {
		op, body, template := api.Operation(tc.op), decoded(t, tc.body), decoded(t, tc.template)
		row, _ := operation.Lookup(tc.op)
		state := func(body, template map[string]any) map[string]any {
			var after map[string]any
			var err error
			if tc.current == "" {
				after, err = nextstate.Create(tc.op, body, template)
			} else {
				after, err = nextstate.Update(tc.op, decoded(t, tc.current), body, template)
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.name, err)
			}
			return after
		}
		judged := state(body, template)
		sent := pinnedBody(body, template, judged, row.Verb)
		if faults := op.ValidateBody(any(sent)); len(faults) > 0 {
			t.Errorf("%s: what is sent is not valid: %v", tc.name, faults)
		}
		got := state(sent, nil)
		for _, m := range []map[string]any{judged, got} {
			delete(m, "templateId")
			if m["registry"] == nil { // in a create, null and absent are one
				delete(m, "registry")
			}
			if g, ok := m["gpu"].(map[string]any); ok && len(g) > 0 {
				m["gpu"] = normal(g)
			}
		}
		if diff := cmp.Diff(judged, got); diff != "" {
			t.Errorf("%s: state (-judged +sent):\n%s", tc.name, diff)
		}
		if _, named := sent["templateId"]; named {
			t.Errorf("%s: the template is still named", tc.name)
		}
	}
}

// normal is a gpu section without an empty constraint.
func normal(g map[string]any) map[string]any {
	out := make(map[string]any, len(g))
	for k, v := range g {
		if list, ok := v.([]any); !ok || len(list) > 0 {
			out[k] = v
		}
	}
	return out
}

// A new endpoint that leaves its name to the template keeps naming it.
func TestABodyThatLeansOnItsTemplate(t *testing.T) {
	template := decoded(t, `{"id":"t1","serverless":true,"image":"t:1","args":"","disk":5,"ports":[],"env":{"A":"t"},"registry":null}`)
	body := decoded(t, `{"templateId":"t1","gpu":{"pools":["ADA_24"]},"scaling":{"type":"QUEUE_DELAY","queueDelay":4}}`)
	after, err := nextstate.Create("createEndpoint", body, template)
	if err != nil {
		t.Fatal(err)
	}
	sent := pinnedBody(body, template, after, operation.VerbCreate)
	want := map[string]any{
		"templateId": "t1", "image": "t:1", "args": "", "disk": json.Number("5"), "ports": []any{}, "env": map[string]any{"A": "t"},
		"gpu": body["gpu"], "scaling": body["scaling"],
	}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}
