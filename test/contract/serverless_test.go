package contract

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// queueBody is a queue endpoint on the cheapest pool.
const queueBody = `{"name":"contract","image":"worker:1","type":"QUEUE","gpu":{"pools":["AMPERE_16"]},"workers":{"max":1},"scaling":{"type":"QUEUE_DELAY","queueDelay":1}}`

func serverless(t *testing.T, c *client) {
	t.Helper()
	podTemplate := c.want(t, 201, "createTemplate", `{"name":"contract","image":"i:1"}`).text("id")
	c.tidy(t, "deleteTemplate", podTemplate)
	for _, one := range []struct {
		status   int
		old, now string
	}{
		{422, `"type":"QUEUE"`, `"type":"TOPIC"`},
		{422, `"name":"contract",`, ``},
		{422, `"type":"QUEUE"`, `"type":"LOAD_BALANCER"`},
		{422, `["AMPERE_16"]`, `[]`},
		{422, `"queueDelay":1`, `"queueDelay":0.1`},
		{422, `"name":"contract"`, `"name":"contract","mounts":{}`},
		{422, `"name":"contract"`, `"name":"contract","templateId":"` + podTemplate + `"`},
		{404, `"name":"contract"`, `"name":"contract","templateId":"nope"`},
		{400, `"gpu":{"pools":["AMPERE_16"]},`, ``},
		{400, `"name":"contract"`, `"name":"contract","cpu":[{"id":"cpu3c","vcpuCount":2}]`},
		{400, `["AMPERE_16"]`, `["AMPERE_16"],"allowedCudaVersions":["12.8"],"minCudaVersion":"12.4"`},
		{400, `["AMPERE_16"]`, `["AMPERE_16"],"excludedTypes":["NVIDIA H200"]`},
		{400, `"max":1`, `"max":1000`},
	} {
		c.want(t, one.status, "createEndpoint", strings.Replace(queueBody, one.old, one.now, 1))
	}
	made := c.want(t, 201, "createEndpoint", queueBody)
	id := made.text("id")
	c.tidy(t, "deleteEndpoint", id)
	if !strings.HasSuffix(made.text("requestUrls.status"), "/v2/"+id+"/status/{job_id}") {
		t.Errorf("requestUrls: got %v", made.at("requestUrls"))
	}
	if diff := cmp.Diff(map[string]any{"min": 0.0, "max": 1.0, "idleTimeout": 10.0}, made.at("workers")); diff != "" {
		t.Errorf("workers (-want +got):\n%s", diff)
	}
	if !strings.Contains(string(c.want(t, 200, "listEndpoints", "").body), id) {
		t.Error("the endpoint is not listed")
	}
	c.want(t, 200, "getEndpoint", "", id)
	endpointChanges(t, c, id)
	endpointWorkers(t, c, id)
	balanced := c.want(t, 201, "createEndpoint", `{"name":"contract","image":"i:1","type":"LOAD_BALANCER","cpu":[{"id":"cpu3c","vcpuCount":2}],"scaling":{"type":"REQUEST_COUNT","requestCount":2}}`)
	if balanced.text("requestUrls.base") == "" || balanced.number("cpu.0.memory") < 1 {
		t.Errorf("LOAD_BALANCER: got %s", balanced.body)
	}
	c.want(t, 204, "deleteEndpoint", "", balanced.text("id"))
	c.want(t, 204, "deleteEndpoint", "", id)
	c.want(t, 404, "deleteEndpoint", "", id)
	boundTemplate(t, c)
}

func endpointChanges(t *testing.T, c *client, id string) {
	t.Helper()
	c.want(t, 200, "updateEndpoint", `{}`, id)
	for body, status := range map[string]int{
		`{"type":"QUEUE"}`: 422, `{"gpu":{"excludedTypes":["x"]}}`: 422, `{"gpu":{"pools":[]}}`: 422,
		`{"cpu":[{"id":"cpu3c","vcpuCount":2}]}`: 400, `{"workers":{"max":1000}}`: 400, `{"templateId":"nope"}`: 404,
	} {
		c.want(t, status, "updateEndpoint", body, id)
	}
	c.want(t, 404, "updateEndpoint", `{}`, "nope")
	c.want(t, 200, "updateEndpoint", `{"image":"worker:2"}`, id)
	r := c.want(t, 200, "listEndpointReleases", "", id)
	if r.number("endpointVersion") != 2 || r.number("releases.0.version") != 2 || len(r.list("releases.0.diff")) == 0 {
		t.Errorf("releases: got %s", r.body)
	}
	if got := c.want(t, 200, "updateEndpoint", `{"scaling":{"type":"REQUEST_COUNT","requestCount":1}}`, id); got.at("workers.idleTimeout") != nil {
		t.Errorf("idleTimeout of a QUEUE by REQUEST_COUNT: got %v", got.at("workers"))
	}
	c.want(t, 200, "updateEndpoint", `{"scaling":{"type":"QUEUE_DELAY","queueDelay":1},"workers":{"min":1}}`, id)
}

func endpointWorkers(t *testing.T, c *client, id string) {
	t.Helper()
	w := c.await(t, "a worker", func() answer { return c.want(t, 200, "listEndpointWorkers", "", id) },
		func(a answer) bool { return a.number("summary.idle") == 1 })
	sum := 0.0
	for _, name := range []string{"running", "idle", "initializing", "throttled", "unhealthy"} {
		sum += w.number("summary." + name)
	}
	if sum != w.number("summary.total") || int(sum) != len(w.list("workers")) {
		t.Errorf("the summary does not add up: %s", w.body)
	}
	op := c.api.operation(t, "getWorkerLogs")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	resp, err := c.http.Do(c.request(ctx, t, op.method, c.url+op.fill([]string{id, w.text("workers.0.id")}), c.key, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	c.note(op.id, resp.StatusCode)
	first := make([]byte, 4)
	if _, err := resp.Body.Read(first); err != nil || resp.StatusCode != http.StatusOK || string(first) != "id: " {
		t.Errorf("worker logs: got %d %q, %v", resp.StatusCode, first, err)
	}
	c.want(t, 404, "getWorkerLogs", "", id, "nope")
}

func boundTemplate(t *testing.T, c *client) {
	t.Helper()
	tpl := c.want(t, 201, "createTemplate", `{"name":"contract","image":"w:1","serverless":true}`).text("id")
	c.tidy(t, "deleteTemplate", tpl)
	body := strings.Replace(queueBody, `"image":"worker:1"`, `"templateId":"`+tpl+`"`, 1)
	e := c.want(t, 201, "createEndpoint", body)
	c.tidy(t, "deleteEndpoint", e.text("id"))
	if got := e.text("image"); got != "w:1" {
		t.Errorf("image of the template: got %q", got)
	}
	c.want(t, 400, "deleteTemplate", "", tpl)
	c.want(t, 204, "deleteEndpoint", "", e.text("id"))
	c.want(t, 422, "createPod", `{"name":"a","templateId":"`+tpl+`","gpu":{"id":"`+c.gpu+`"}}`)
}
