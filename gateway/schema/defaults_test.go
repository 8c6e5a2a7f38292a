package schema_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFillDefaults(t *testing.T) {
	tests := []struct{ name, operation, body, want string }{
		{
			"GPU pod", "createPod", `{"name":"a","image":"i","gpu":{"id":"x"}}`,
			`{"name":"a","image":"i","gpu":{"id":"x","count":1},"cloud":"SECURE","globalNetworking":false,"startJupyter":false,"startSsh":false}`,
		},
		{
			"nothing is overwritten", "createPod", `{"name":"a","image":"i","gpu":{"id":"x","count":8},"cloud":"COMMUNITY","globalNetworking":true,"startJupyter":true,"startSsh":true}`,
			`{"name":"a","image":"i","gpu":{"id":"x","count":8},"cloud":"COMMUNITY","globalNetworking":true,"startJupyter":true,"startSsh":true}`,
		},
		{
			"CPU pod gets no GPU", "createPod", `{"name":"a","image":"i","cpu":{"id":"c","vcpuCount":2}}`,
			`{"name":"a","image":"i","cpu":{"id":"c","vcpuCount":2},"cloud":"SECURE","globalNetworking":false,"startJupyter":false,"startSsh":false}`,
		},
		{
			"a template decides on ssh and notebook", "createPod", `{"name":"a","templateId":"t","gpu":{"id":"x"},"startSsh":false}`,
			`{"name":"a","templateId":"t","gpu":{"id":"x","count":1},"cloud":"SECURE","globalNetworking":false,"startSsh":false}`,
		},
		{
			"endpoint that scales by delay", "createEndpoint", `{"name":"e","image":"i","type":"QUEUE","scaling":{"type":"QUEUE_DELAY","queueDelay":4},"gpu":{"pools":["a"]}}`,
			`{"name":"e","image":"i","type":"QUEUE","scaling":{"type":"QUEUE_DELAY","queueDelay":4},"gpu":{"pools":["a"],"count":1},
			"workers":{"min":0,"max":3,"idleTimeout":10},"timeout":300000,"flashboot":"OFF"}`,
		},
		{
			"endpoint with some of its workers set", "createEndpoint", `{"name":"e","image":"i","type":"LOAD_BALANCER","scaling":{"type":"REQUEST_COUNT","requestCount":4},"cpu":[{"id":"c","vcpuCount":2}],"workers":{"max":1},"timeout":1}`,
			`{"name":"e","image":"i","type":"LOAD_BALANCER","scaling":{"type":"REQUEST_COUNT","requestCount":4},"cpu":[{"id":"c","vcpuCount":2}],
			"workers":{"min":0,"max":1,"idleTimeout":10},"timeout":1,"flashboot":"OFF"}`,
		},
		{
			"no idle timeout where there is none", "createEndpoint", `{"name":"e","image":"i","type":"QUEUE","scaling":{"type":"REQUEST_COUNT","requestCount":4},"gpu":{"pools":["a"]}}`,
			`{"name":"e","image":"i","type":"QUEUE","scaling":{"type":"REQUEST_COUNT","requestCount":4},"gpu":{"pools":["a"],"count":1},
			"workers":{"min":0,"max":3},"timeout":300000,"flashboot":"OFF"}`,
		},
		{
			"endpoint of no type", "createEndpoint", `{"name":"e","image":"i","scaling":{"type":"REQUEST_COUNT","requestCount":4},"gpu":{"pools":["a"]}}`,
			`{"name":"e","image":"i","type":"QUEUE","scaling":{"type":"REQUEST_COUNT","requestCount":4},"gpu":{"pools":["a"],"count":1},
			"workers":{"min":0,"max":3},"timeout":300000,"flashboot":"OFF"}`,
		},
		{
			"template", "createTemplate", `{"name":"t","image":"i"}`,
			`{"name":"t","image":"i","category":"NVIDIA","public":false,"serverless":false,"startJupyter":true,"startSsh":true}`,
		},
		{
			"cluster", "createCluster", `{"name":"c"}`, `{"name":"c","startJupyter":false,"startSsh":false}`,
		},
		{"volume", "createNetworkVolume", `{"name":"v","size":10}`, `{"name":"v","size":10}`},
		{"a change keeps what is left out", "updateEndpoint", `{"gpu":{"pools":["a"]},"workers":{}}`, `{"gpu":{"pools":["a"]},"workers":{}}`},
		{"an action", "podAction", `{"action":"stop"}`, `{"action":"stop"}`},
		{"no object", "createPod", `[1,{}]`, `[1,{}]`},
		{"null", "createPod", `null`, `null`},
	}
	api := load(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := parse(t, tt.body)
			got := api.Operation(tt.operation).FillDefaults(body)
			if diff := cmp.Diff(parse(t, tt.want), got); diff != "" {
				t.Errorf("defaults (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(parse(t, tt.body), body); diff != "" {
				t.Errorf("the body itself was changed (-want +got):\n%s", diff)
			}
		})
	}
}

// Generated clients send every documented default: no operation refuses one, and those that the platform would refuse are not sent.
func TestDocumentedDefaultsAreAccepted(t *testing.T) {
	api := load(t)
	for _, op := range api.Operations() {
		query := make(url.Values)
		for _, p := range op.Query {
			if p.Default != "" {
				query.Set(p.Name, p.Default)
			}
		}
		got, faults := op.CanonicalQuery(query)
		if len(faults) > 0 || strings.Contains(op.ID, "GpuType") && len(got) > 0 {
			t.Errorf("%s?%s: %v, sent as %v", op.ID, query.Encode(), lines(faults), got)
		}
	}
	for _, endpoint := range []string{gpuEndpoint(`"scaling":{"type":"QUEUE_DELAY","queueDelay":4}`), gpuEndpoint(`"scaling":{"type":"REQUEST_COUNT","requestCount":1}`), gpuEndpoint(`"type":"LOAD_BALANCER"`)} {
		op := api.Operation("createEndpoint")
		body, _ := op.FillDefaults(parse(t, endpoint)).(map[string]any)
		body["workers"] = parse(t, `{"min":0,"max":3,"idleTimeout":10}`)
		if faults := append(op.ValidateBody(op.WithoutRefusedDefault(body)), op.CheckRules(op.WithoutRefusedDefault(body))...); len(faults) > 0 {
			t.Errorf("%s with all defaults: %v", endpoint, lines(faults))
		}
		body["workers"] = parse(t, `{"min":0,"max":3,"idleTimeout":11}`)
		if diff := cmp.Diff(any(body), op.WithoutRefusedDefault(body)); diff != "" {
			t.Errorf("%s: what is no default was changed (-want +got):\n%s", endpoint, diff)
		}
	}
}

// FillDefaults changes neither the body nor the next call's result.
func TestFillDefaultsChangesNothing(t *testing.T) {
	op := operation(t, "createEndpoint")
	for _, text := range []string{
		gpuEndpoint(`"env":{"A":"1"}`), gpuEndpoint(`"workers":{"min":0}`), gpuEndpoint(`"workers":{"min":0},"scaling":{"type":"REQUEST_COUNT"}`),
	} {
		body := parse(t, text)
		first := op.FillDefaults(body)
		if diff := cmp.Diff(parse(t, text), body); diff != "" {
			t.Errorf("%s: the body (-before +after):\n%s", text, diff)
		}
		if diff := cmp.Diff(first, op.FillDefaults(parse(t, text))); diff != "" {
			t.Errorf("%s: defaults (-first +next):\n%s", text, diff)
		}
	}
}

// A valid create request stays valid with its defaults filled in.
func TestFillDefaultsStaysValid(t *testing.T) {
	api := load(t)
	for id, body := range map[string]string{
		"createPod": pod(``), "createEndpoint": gpuEndpoint(``), "createTemplate": `{"name":"t","image":"i"}`,
		"createCluster":       `{"name":"c","type":"RAY","compute":{"gpuTypeId":"x","gpuCountPerPod":8,"podCount":2}}`,
		"createNetworkVolume": `{"name":"v","dataCenter":"d","size":10}`, "createRegistry": `{"name":"r","username":"u","password":"p"}`,
	} {
		op := api.Operation(id)
		filled := op.FillDefaults(parse(t, body))
		if vs := append(op.ValidateBody(filled), op.CheckRules(filled)...); len(vs) > 0 {
			t.Errorf("%s: defaults make the body invalid: %v", id, vs)
		}
	}
}

// Released clients send a new endpoint empty mounts, which ask for nothing. Others are refused.
func TestEmptyMountsOfAnEndpoint(t *testing.T) {
	op := operation(t, "createEndpoint")
	for mounts, fits := range map[string]bool{`{}`: true, `{"network":[],"global":[]}`: true, `{"network":[{"volumeId":"v1"}]}`: false, `[]`: false, `{"network":null}`: false} {
		body := parse(t, gpuEndpoint(`"mounts":`+mounts))
		if faults := op.ValidateBody(op.WithoutRefusedDefault(body)); (len(faults) == 0) != fits {
			t.Errorf("mounts %s: %v, want them to fit: %t", mounts, lines(faults), fits)
		}
	}
}
