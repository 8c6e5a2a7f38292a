package hostile

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestTemplatesAreJudged: the values of a template are judged as if they stood in the
// body, in every dialect, and the sent request names no template any more.
func TestTemplatesAreJudged(t *testing.T) {
	t.Parallel()
	const (
		evil   = `{"id":"tevil","name":"t","image":"docker.io/evil/miner:1","public":true,"serverless":false,"category":"NVIDIA","disk":20,"ports":["22/tcp"],"env":{},"mounts":{},"args":"","startSsh":true,"startJupyter":false}`
		worker = `{"id":"twork","name":"t","image":"docker.io/evil/miner:1","public":true,"serverless":true,"category":"NVIDIA","disk":20,"ports":[],"env":{},"mounts":{},"args":""}`
		mine   = `{"id":"tmine","name":"t","image":"ghcr.io/strict/train:1","public":true,"serverless":false,"category":"NVIDIA","disk":20,"ports":["8888/http"],"env":{"A":"1"},"mounts":{},"args":""}`
		server = `{"id":"e1","name":"e","type":"QUEUE","image":"ghcr.io/strict/w:1","gpu":{"count":1,"pools":["ADA_24"],"allowedCudaVersions":[],"minCudaVersion":null},"workers":{"min":0,"max":1,"idleTimeout":10},"scaling":{"type":"QUEUE_DELAY","queueDelay":4},"dataCenterIds":[],"networkVolumes":[],"timeout":300000,"flashboot":"OFF","createdAt":"2026-11-21T10:00:00Z"}`
	)
	s := open(t, answering(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/tevil"):
			_, _ = io.WriteString(w, evil)
		case strings.HasSuffix(r.URL.Path, "/twork"):
			_, _ = io.WriteString(w, worker)
		case strings.HasSuffix(r.URL.Path, "/tmine"):
			_, _ = io.WriteString(w, mine)
		case r.URL.Path == "/v2/templates":
			_, _ = io.WriteString(w, `{"templates":[]}`)
		case r.URL.Path == "/v2/serverless/e1":
			_, _ = io.WriteString(w, server)
		default:
			obliging(w, r)
		}
	}))
	for name, raw := range map[string]string{
		"create pod":              request("POST", "/v2/pods", k3, `{"name":"x","templateId":"tevil","gpu":{"id":"NVIDIA A40"}}`),
		"create pod, own image":   request("POST", "/v2/pods", k3, `{"name":"x","templateId":"tevil","image":"ghcr.io/strict/a:1","gpu":{"id":"NVIDIA A40"}}`),
		"create pod, own ports":   request("POST", "/v2/pods", k3, `{"name":"x","templateId":"tevil","ports":[],"gpu":{"id":"NVIDIA A40"}}`),
		"create pod without":      request("POST", "/v2/pods", k3, `{"name":"x","image":"evil:1","gpu":{"id":"NVIDIA A40"}}`),
		"update pod":              request("PATCH", "/v2/pods/pod1", k3, `{"templateId":"tevil"}`),
		"update pod's image":      request("PATCH", "/v2/pods/pod1", k3, `{"image":"evil:1"}`),
		"rename a pod that broke": request("PATCH", "/v2/pods/pod1", k3, `{"name":"b"}`),
		"start a pod that broke":  request("POST", "/v2/pods/pod1/action", k3, `{"action":"start"}`),
		"create endpoint":         request("POST", "/v2/serverless", k3, `{"name":"e","type":"QUEUE","templateId":"twork","gpu":{"pools":["ADA_24"]},"scaling":{"type":"QUEUE_DELAY","queueDelay":4}}`),
		"update endpoint":         request("PATCH", "/v2/serverless/e1", k3, `{"templateId":"twork"}`),
		"create template":         request("POST", "/v2/templates", k3, `{"name":"t","image":"evil:1","serverless":false}`),
		"v1":                      request("POST", "/v1/pods", k3, `{"name":"x","templateId":"tevil","gpuTypeIds":["NVIDIA A40"]}`),
		"graphql": request("POST", "/graphql", k3,
			`{"query":"mutation { podFindAndDeployOnDemand(input: {name: \"a\", templateId: \"tevil\", gpuTypeId: \"NVIDIA A40\", cloudType: SECURE}) { id } }"}`),
	} {
		a := s.ask(t, raw)
		if n := changes(s.recorder.take()); n != 0 {
			t.Errorf("%s: %d changes at the platform, answer %d %s", name, n, a.Status, a.Body)
		}
		if !strings.Contains(a.Body, "images: ") && !strings.Contains(a.Body, "ports: ") {
			t.Errorf("%s: answer %d %s, want a policy's refusal", name, a.Status, a.Body)
		}
	}
	a := s.ask(t, request("POST", "/v2/pods", k3, `{"name":"x","templateId":"tmine","gpu":{"id":"NVIDIA A40"}}`))
	calls := s.recorder.take()
	if last := calls[len(calls)-1]; a.Status != 201 || strings.Contains(last.Body, "templateId") || !strings.Contains(last.Body, `"image":"ghcr.io/strict/train:1"`) {
		t.Errorf("a good template: answer %d %s, the platform got %s, want what was judged in place of the template", a.Status, a.Body, last.Body)
	}
}
