package platform

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const queueEndpoint = `{"name":"e","image":"i","type":"QUEUE","gpu":{"pools":["ADA_24"]},"scaling":{"type":"QUEUE_DELAY","queueDelay":4}}`

func (r *rig) newEndpoint(body string) string {
	r.t.Helper()
	return r.want(201, "POST", "/v2/serverless", body).text("id")
}

func TestEndpointRecord(t *testing.T) {
	r := newRig(t, Options{RunURL: "https://run.example.test/"})
	e := r.want(201, "POST", "/v2/serverless", queueEndpoint)
	id := e.text("id")
	base := "https://run.example.test/v2/" + id
	want := map[string]any{
		"id": id, "name": "e", "type": "QUEUE", "image": "i", "args": "", "cmd": []any{}, "entrypoint": []any{}, "disk": 20.0,
		"env": map[string]any{}, "ports": []any{}, "registry": nil,
		"requestUrls": map[string]any{
			"run": base + "/run", "runSync": base + "/runsync", "status": base + "/status/{job_id}", "stream": base + "/stream/{job_id}",
			"cancel": base + "/cancel/{job_id}", "retry": base + "/retry/{job_id}", "purgeQueue": base + "/purge-queue", "health": base + "/health",
		},
		"gpu":     map[string]any{"pools": []any{"ADA_24"}, "count": 1.0, "allowedCudaVersions": []any{}, "minCudaVersion": nil},
		"workers": map[string]any{"min": 0.0, "max": 3.0, "idleTimeout": 10.0}, "scaling": map[string]any{"type": "QUEUE_DELAY", "queueDelay": 4.0},
		"dataCenterIds": []any{}, "networkVolumes": []any{}, "timeout": 300000.0, "flashboot": "OFF", "createdAt": "2026-06-01T12:00:00Z",
	}
	if diff := cmp.Diff(want, e.body); diff != "" {
		t.Errorf("QUEUE (-want +got):\n%s", diff)
	}
	lb := r.want(201, "POST", "/v2/serverless", `{"name":"l","image":"i","type":"LOAD_BALANCER","cpu":[{"id":"cpu3c","vcpuCount":2},{"id":"cpu3c","vcpuCount":4}],"scaling":{"type":"REQUEST_COUNT","requestCount":2},"env":{"HEALTH_CHECK_PATH":"/up"}}`)
	wantURLs := map[string]any{"base": "https://" + lb.text("id") + ".run.example.test", "health": "https://" + lb.text("id") + ".run.example.test/up"}
	if diff := cmp.Diff(wantURLs, lb.at("requestUrls")); diff != "" {
		t.Errorf("LOAD_BALANCER (-want +got):\n%s", diff)
	}
	if lb.at("gpu") != nil || lb.at("cpu.1.memory") != 8.0 || lb.at("workers.idleTimeout") != 10.0 {
		t.Errorf("CPU endpoint: got %s", lb.raw)
	}
	if list, _ := r.want(200, "GET", "/v2/serverless", "").at("endpoints").([]any); len(list) != 2 {
		t.Errorf("list: got %d endpoints", len(list))
	}
	r.want(204, "DELETE", "/v2/serverless/"+id, "")
	r.want(404, "GET", "/v2/serverless/"+id, "")
	r.want(404, "DELETE", "/v2/serverless/"+id, "")
}

func TestCreateEndpointRefusals(t *testing.T) {
	change := func(old, now string) string {
		if !strings.Contains(queueEndpoint, old) {
			t.Fatalf("nothing to change: %s", old)
		}
		return strings.Replace(queueEndpoint, old, now, 1)
	}
	tests := []struct {
		name, body string
		status     int
		says       string
	}{
		{"no name", change(`"name":"e",`, ``), 422, "missing property 'name'"},
		{"no scaling", change(`,"scaling":{"type":"QUEUE_DELAY","queueDelay":4}`, ``), 422, "missing property 'scaling'"},
		{"neither name nor image nor template", change(`"name":"e","image":"i",`, ``), 422, "missing property 'name'"},
		{"no image", change(`"image":"i",`, ``), 422, "missing property 'image'"},
		{"scaling without type", change(`"type":"QUEUE_DELAY",`, ``), 422, "$.scaling: missing property 'type'"},
		{"mixed scaling", change(`"queueDelay":4`, `"requestCount":4`), 422, "'requestCount' not allowed"},
		{"short delay", change(`"queueDelay":4`, `"queueDelay":0.4`), 422, "$.scaling.queueDelay"},
		{"balanced by delay", change(`"type":"QUEUE"`, `"type":"LOAD_BALANCER"`), 422, "REQUEST_COUNT"},
		{"mounts", change(`"name"`, `"mounts":{},"name"`), 422, "'mounts' not allowed"},
		{"no pools", change(`"pools":["ADA_24"]`, ``), 422, "missing property 'pools'"},
		{"empty pools", change(`["ADA_24"]`, `[]`), 422, "$.gpu.pools"},
		{"unknown pool", change(`["ADA_24"]`, `["ADA_25"]`), 400, "ADA_25"},
		{"exclusion twice", change(`["ADA_24"]`, `["ADA_24"],"excludedTypes":["a","a"]`), 422, "equal"},
		{"exclusion blank", change(`["ADA_24"]`, `["ADA_24"],"excludedTypes":[" "]`), 422, "$.gpu.excludedTypes[0]"},
		{"exclusion from elsewhere", change(`["ADA_24"]`, `["ADA_24"],"excludedTypes":["NVIDIA L4"]`), 400, "not a type of the pools"},
		{"nothing left", change(`["ADA_24"]`, `["ADA_24"],"excludedTypes":[" NVIDIA GeForce RTX 4090 "]`), 400, "leaves no GPU type"},
		{"both CUDA constraints", change(`["ADA_24"]`, `["ADA_24"],"allowedCudaVersions":["12.8"],"minCudaVersion":"12.4"`), 400, "exclude each other"},
		{"neither", change(`"gpu":{"pools":["ADA_24"]},`, ``), 400, "exactly one"},
		{"both", change(`"gpu"`, `"cpu":[{"id":"cpu3c","vcpuCount":2}],"gpu"`), 400, "exactly one"},
		{"cpu empty", change(`"gpu":{"pools":["ADA_24"]}`, `"cpu":[]`), 422, "$.cpu"},
		{"cpu twice", change(`"gpu":{"pools":["ADA_24"]}`, `"cpu":[{"id":"cpu3c","vcpuCount":2},{"id":"cpu3c","vcpuCount":2}]`), 422, "equal"},
		{"cpu with CUDA", change(`"gpu":{"pools":["ADA_24"]}`, `"cpu":[{"id":"cpu3c","vcpuCount":2,"minCudaVersion":"12.4"}]`), 422, "'minCudaVersion' not allowed"},
		{"min above max", change(`"name"`, `"workers":{"min":4},"name"`), 400, "workers.min"},
		{"idle too long", change(`"name"`, `"workers":{"idleTimeout":3601},"name"`), 422, "$.workers.idleTimeout"},
		{"idle with count", change(`{"type":"QUEUE_DELAY","queueDelay":4}`, `{"type":"REQUEST_COUNT","requestCount":1},"workers":{"idleTimeout":5}`), 400, "idleTimeout"},
		{"above the quota", change(`"name"`, `"workers":{"max":31},"name"`), 400, "quota of 30"},
		{"unknown template", change(`"name"`, `"templateId":"nope","name"`), 404, "template"},
		{"pod template", change(`"name"`, `"templateId":"tplpytorch","name"`), 422, "$.templateId"},
		{"unknown volume", change(`"name"`, `"networkVolumes":["nope"],"name"`), 400, "nope"},
		{"unknown data center", change(`"name"`, `"dataCenterIds":["nope"],"name"`), 400, "nope"},
		{"flashboot", change(`"name"`, `"flashboot":"ON","name"`), 422, "$.flashboot"},
	}
	r := newRig(t, Options{})
	for _, tt := range tests {
		if a := r.call("POST", "/v2/serverless", tt.body); a.status != tt.status || !strings.Contains(a.raw, tt.says) {
			t.Errorf("%s: got %d %s, want %d with %q", tt.name, a.status, a.raw, tt.status, tt.says)
		}
	}
	if raw := r.want(200, "GET", "/v2/serverless", "").raw; raw != empty("endpoints") {
		t.Errorf("a refused create left an endpoint: %s", raw)
	}
}

func TestUpdateEndpoint(t *testing.T) {
	r := newRig(t, Options{})
	id := r.newEndpoint(strings.Replace(queueEndpoint, `["ADA_24"]`, `["ADA_24","AMPERE_24"],"excludedTypes":["NVIDIA L4"],"allowedCudaVersions":["12.8"]`, 1))
	tests := []struct {
		name, body string
		status     int
		path       string
		want       any
	}{
		{"nothing", `{}`, 200, "name", "e"},
		{"type", `{"type":"QUEUE"}`, 422, "", nil},
		{"cpu on GPU", `{"cpu":[{"id":"cpu3c","vcpuCount":2}]}`, 400, "", nil},
		{"exclusions alone", `{"gpu":{"excludedTypes":["NVIDIA L4"]}}`, 422, "", nil},
		{"count keeps exclusions", `{"gpu":{"count":2}}`, 200, "gpu.excludedTypes", []any{"NVIDIA L4"}},
		{"pools clear exclusions", `{"gpu":{"pools":["ADA_24"]}}`, 200, "gpu.excludedTypes", nil},
		{"floor beside list", `{"gpu":{"minCudaVersion":"12.4"}}`, 400, "", nil},
		{"floor instead of list", `{"gpu":{"minCudaVersion":"12.4","allowedCudaVersions":[]}}`, 200, "gpu.minCudaVersion", "12.4"},
		{"floor cleared", `{"gpu":{"minCudaVersion":""}}`, 200, "gpu.minCudaVersion", nil},
		{"max alone", `{"workers":{"max":5}}`, 200, "workers", map[string]any{"min": 0.0, "max": 5.0, "idleTimeout": 10.0}},
		{"above the quota", `{"workers":{"max":31}}`, 400, "", nil},
		{"scaling", `{"scaling":{"type":"REQUEST_COUNT","requestCount":3}}`, 200, "workers", map[string]any{"min": 0.0, "max": 5.0}},
		{"template", `{"templateId":"tplworker1","env":{"A":"1"}}`, 200, "env", map[string]any{"MODEL_NAME": "small-chat", "A": "1"}},
		{"pod template", `{"templateId":"tplpytorch"}`, 422, "", nil},
		{"unknown template", `{"templateId":"nope"}`, 404, "", nil},
		{"env replaces", `{"env":{"B":"2"}}`, 200, "env", map[string]any{"B": "2"}},
	}
	for _, tt := range tests {
		a := r.want(tt.status, "PATCH", "/v2/serverless/"+id, tt.body)
		if tt.status == 200 {
			if diff := cmp.Diff(tt.want, a.at(tt.path)); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", tt.name, tt.path, diff)
			}
		}
	}
	r.want(404, "PATCH", "/v2/serverless/nope", `{}`)
	cpu := r.newEndpoint(strings.Replace(queueEndpoint, `"gpu":{"pools":["ADA_24"]}`, `"cpu":[{"id":"cpu3c","vcpuCount":2}]`, 1))
	r.want(400, "PATCH", "/v2/serverless/"+cpu, `{"gpu":{"count":1}}`)
	if got := r.want(200, "PATCH", "/v2/serverless/"+cpu, `{"cpu":[{"id":"cpu5c","vcpuCount":8}]}`).text("cpu.0.id"); got != "cpu5c" {
		t.Errorf("cpu replaced: got %q", got)
	}
}

func TestBoundTemplate(t *testing.T) {
	r := newRig(t, Options{})
	tpl := r.want(201, "POST", "/v2/templates", `{"name":"t","image":"i","serverless":true,"allowedCudaVersions":["12.8"],"env":{"A":"1","B":"1"}}`).text("id")
	body := `{"name":"e","templateId":"` + tpl + `","env":{"B":"2"},"type":"QUEUE","gpu":{"pools":["ADA_24"]},"scaling":{"type":"QUEUE_DELAY","queueDelay":4}}`
	e := r.want(201, "POST", "/v2/serverless", body)
	if diff := cmp.Diff(map[string]any{"A": "1", "B": "2"}, e.at("env")); diff != "" {
		t.Errorf("env (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{"12.8"}, e.at("gpu.allowedCudaVersions")); diff != "" {
		t.Errorf("CUDA seeded by the template (-want +got):\n%s", diff)
	}
	floor := r.want(201, "POST", "/v2/serverless", strings.Replace(body, `["ADA_24"]`, `["ADA_24"],"minCudaVersion":"12.4"`, 1))
	if diff := cmp.Diff([]any{}, floor.at("gpu.allowedCudaVersions")); diff != "" {
		t.Errorf("with a floor in the body (-want +got):\n%s", diff)
	}
	r.want(400, "DELETE", "/v2/templates/"+tpl, "")
	r.want(204, "DELETE", "/v2/serverless/"+e.text("id"), "")
	r.want(204, "DELETE", "/v2/serverless/"+floor.text("id"), "")
	r.want(204, "DELETE", "/v2/templates/"+tpl, "")
}

func TestWorkersAndReleases(t *testing.T) {
	r := newRig(t, Options{})
	id := r.newEndpoint(strings.Replace(queueEndpoint, `"name"`, `"workers":{"min":2,"max":3},"name"`, 1))
	path := "/v2/serverless/" + id
	w := r.want(200, "GET", path+"/workers", "")
	if w.at("summary.initializing") != 2.0 || w.at("summary.total") != 2.0 || w.at("workers.0.startedAt") != nil || w.at("workers.0.uptimeSeconds") != nil {
		t.Errorf("at the start: got %s", w.raw)
	}
	if _, perHour, _ := r.Balance("default"); perHour != 0 {
		t.Errorf("workers cost %v per hour while they come up", perHour)
	}
	r.Clock().Advance(65 * time.Second)
	w = r.want(200, "GET", path+"/workers", "")
	want := map[string]any{
		"id": w.text("workers.0.id"), "status": "IDLE", "isStale": false, "version": 1.0, "gpuCount": 1.0, "image": "i", "uptimeSeconds": 60.0,
		"gpuTypeId": "NVIDIA GeForce RTX 4090", "dataCenterId": w.text("workers.0.dataCenterId"), "startedAt": "2026-06-01T12:00:05Z",
	}
	if diff := cmp.Diff(want, w.at("workers.0")); diff != "" {
		t.Errorf("worker (-want +got):\n%s", diff)
	}
	if _, perHour, _ := r.Balance("default"); perHour < 2.2 || perHour > 2.21 {
		t.Errorf("two workers cost %v per hour, want 2.2 and their disk", perHour)
	}
	r.want(200, "PATCH", path, `{"image":"i:2"}`)
	rel := r.want(200, "GET", path+"/releases", "")
	if rel.at("endpointVersion") != 2.0 || rel.at("releases.0.version") != 2.0 || rel.at("releases.1.version") != 1.0 || rel.text("releases.0.source") != "MANUAL" {
		t.Errorf("releases: got %s", rel.raw)
	}
	if diff := cmp.Diff([]any{map[string]any{"field": "template.imageName", "old": "i", "new": "i:2"}}, rel.at("releases.0.diff")); diff != "" {
		t.Errorf("diff (-want +got):\n%s", diff)
	}
	if rel.at("rollout.percentOnLatest") != 100.0 || rel.at("rollout.inProgress") != false {
		t.Errorf("idle workers are replaced at once: got %v", rel.at("rollout"))
	}
	r.want(200, "PATCH", path, `{"gpu":{"count":2}}`)
	if got := r.want(200, "GET", path+"/releases", "").text("releases.0.diff.0.field"); got != "compute" {
		t.Errorf("a new count is a release of %q", got)
	}
	r.want(200, "PATCH", path, `{"workers":{"min":0,"max":1}}`)
	if got := r.want(200, "GET", path+"/workers", "").at("summary.total"); got != 1.0 {
		t.Errorf("above workers.max: %v workers", got)
	}
	r.want(404, "GET", "/v2/serverless/nope/workers", "")
	r.want(404, "GET", "/v2/serverless/nope/releases", "")
	r.want(404, "GET", path+"/workers/nope/logs", "")
	r.want(404, "GET", "/v2/serverless/nope/workers/nope/logs", "")
}

func TestThrottledWorkers(t *testing.T) {
	r := newRig(t, Options{})
	if err := r.SetStock("NVIDIA GeForce RTX 4090", "", "", 0); err != nil {
		t.Fatal(err)
	}
	id := r.newEndpoint(strings.Replace(queueEndpoint, `"name"`, `"workers":{"min":1},"name"`, 1))
	w := r.want(200, "GET", "/v2/serverless/"+id+"/workers", "")
	if w.text("workers.0.status") != "THROTTLED" || w.at("workers.0.gpuTypeId") != nil || w.at("summary.throttled") != 1.0 {
		t.Errorf("without stock: got %s", w.raw)
	}
	if err := r.SetStock("NVIDIA GeForce RTX 4090", "", "", 1); err != nil {
		t.Fatal(err)
	}
	if got := r.want(200, "GET", "/v2/serverless/"+id+"/workers", "").text("workers.0.status"); got != "INITIALIZING" {
		t.Errorf("when there is stock: got %s", got)
	}
	r.Clock().Advance(time.Minute)
	worker := r.want(200, "GET", "/v2/serverless/"+id+"/workers", "").text("workers.0.id")
	if err := r.setWorkerUnhealthy(id, worker); err != nil {
		t.Fatal(err)
	}
	if got := r.want(200, "GET", "/v2/serverless/"+id+"/workers", "").at("summary.unhealthy"); got != 1.0 {
		t.Errorf("unhealthy: got %v", got)
	}
	r.Clock().Advance(11 * time.Second)
	if got := r.want(200, "GET", "/v2/serverless/"+id+"/workers", "").text("workers.0.id"); got == worker {
		t.Error("an unhealthy worker was never replaced")
	}
	if r.setWorkerUnhealthy(id, "nope") == nil || r.setWorkerUnhealthy("nope", worker) == nil {
		t.Error("something unknown was made unhealthy")
	}
}

func TestServerlessWithoutMoney(t *testing.T) {
	r := newRig(t, Options{Accounts: []Account{{ID: "a", Key: DefaultKey, Balance: 1.1}}})
	id := r.newEndpoint(strings.Replace(queueEndpoint, `"name"`, `"workers":{"min":1},"name"`, 1))
	r.Clock().Advance(2 * time.Hour)
	if got := r.want(200, "GET", "/v2/serverless/"+id+"/workers", "").at("summary.total"); got != 0.0 {
		t.Errorf("workers without money: got %v", got)
	}
	if left, perHour, _ := r.Balance("a"); left != 0 || perHour != 0 {
		t.Errorf("got balance %v, %v per hour; want 0 and 0", left, perHour)
	}
	if got := r.want(200, "GET", "/v2/serverless/"+id, "").at("workers.max"); got != 3.0 {
		t.Errorf("the owner's workers.max became %v", got)
	}
	if err := r.SetBalance("a", 10); err != nil {
		t.Fatal(err)
	}
	if got := r.want(200, "GET", "/v2/serverless/"+id+"/workers", "").at("summary.total"); got != 1.0 {
		t.Errorf("workers after paying: got %v", got)
	}
	sum := r.want(200, "GET", "/v2/billing/serverless", "")
	sum.amount(t, "metadata.totals.totalAmount", 1.1)
	if sum.at("metadata.uniqueServerlessCount") != 1.0 {
		t.Errorf("metadata: got %v", sum.at("metadata"))
	}
}
