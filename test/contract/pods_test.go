package contract

import (
	"bufio"
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// podBody is a create of the cheapest pod, with more members.
func (c *client) podBody(more ...string) string {
	return `{"name":"contract","image":"alpine:3","gpu":{"id":"` + c.gpu + `"}` + strings.Join(append([]string{""}, more...), ",") + `}`
}

func pods(t *testing.T, c *client) {
	t.Helper()
	t.Run("refusals", func(t *testing.T) { podRefusals(t, c) })
	t.Run("life", func(t *testing.T) { podLife(t, c) })
	t.Run("change", func(t *testing.T) { podChange(t, c) })
	t.Run("template", func(t *testing.T) { podFromTemplate(t, c) })
	t.Run("no capacity", func(t *testing.T) { podCapacity(t, c) })
}

func podRefusals(t *testing.T, c *client) {
	t.Helper()
	serverless := c.want(t, 201, "createTemplate", `{"name":"contract","image":"i:1","serverless":true}`).text("id")
	c.tidy(t, "deleteTemplate", serverless)
	gpu := `"gpu":{"id":"` + c.gpu + `"}`
	for body, status := range map[string]int{
		`{"image":"i",` + gpu + `}`:                                                                                    422,
		`{"name":"a",` + gpu + `}`:                                                                                     422,
		`{"name":"a","image":"i",` + gpu + `,"disk":0}`:                                                                422,
		`{"name":"a","image":"i",` + gpu + `,"env":{"A":1}}`:                                                           422,
		`{"name":"a","image":"i","gpu":{"id":"` + c.gpu + `","count":0}}`:                                              422,
		`{"name":"a","image":"i","cpu":{"id":"cpu3c","vcpuCount":1}}`:                                                  422,
		`{"name":"a","templateId":"` + serverless + `",` + gpu + `}`:                                                   422,
		`{"name":"a","templateId":"nope",` + gpu + `}`:                                                                 404,
		`{"name":"a","image":"i"}`:                                                                                     400,
		`{"name":"a","image":"i","gpu":{"id":"no such GPU"}}`:                                                          400,
		`{"name":"a","image":"i","gpu":{"id":"` + c.gpu + `","count":99}}`:                                             400,
		`{"name":"a","image":"i","gpu":{"id":"` + c.gpu + `","allowedCudaVersions":["12.8"],"minCudaVersion":"12.4"}}`: 400,
		`{"name":"a","image":"i",` + gpu + `,"mounts":{"persistent":{"size":10,"path":"/a"},"network":[{"volumeId":"v","path":"/b"}]}}`:  400,
		`{"name":"a","image":"i",` + gpu + `,"args":"run this","cmd":["run","that"]}`:                                                    400,
		`{"name":"a","image":"i",` + gpu + `,"mounts":{"persistent":{"size":10}}}`:                                                       422,
		`{"name":"a","image":"i","cpu":{"id":"cpu3c","vcpuCount":2},"mounts":{"persistent":{"size":10,"path":"/a"}},"dataCenterIds":[]}`: 400,
	} {
		c.want(t, status, "createPod", body)
	}
}

func podLife(t *testing.T, c *client) {
	t.Helper()
	made := c.want(t, 201, "createPod", c.podBody(`"ports":["8080/http","22/tcp"]`, `"args":"sleep infinity"`))
	id := made.text("id")
	c.tidy(t, "deletePod", id)
	if got := made.text("status"); got != "PROVISIONING" {
		t.Errorf("a new pod is %s", got)
	}
	if diff := cmp.Diff([]any{"sleep", "infinity"}, made.at("cmd")); diff != "" {
		t.Errorf("cmd (-want +got):\n%s", diff)
	}
	if made.at("template") != nil || made.at("startedAt") != nil || made.number("gpu.vcpuCount") < 1 || made.number("gpu.memory") < 1 {
		t.Errorf("a new pod: got %s", made.body)
	}
	price := c.want(t, 200, "getGpuType", "", c.gpu).number("price.secure")
	if got := made.number("cost"); got != price {
		t.Errorf("cost: got %v, want the catalog's %v", got, price)
	}
	up := c.awaitStatus(t, id, "RUNNING")
	if up.at("runtime") == nil || up.at("startedAt") == nil || up.at("ssh.direct") == nil || up.at("ssh.proxy") == nil {
		t.Errorf("a running pod: got %s", up.body)
	}
	if diff := cmp.Diff([]any{"stop", "restart", "terminate"}, up.at("actions")); diff != "" {
		t.Errorf("actions while RUNNING (-want +got):\n%s", diff)
	}
	podLogs(t, c, id)
	act := func(status int, action string) answer {
		t.Helper()
		return c.want(t, status, "podAction", `{"action":"`+action+`"}`, id)
	}
	act(409, "start")
	act(200, "restart")
	c.awaitStatus(t, id, "RUNNING")
	c.want(t, 422, "podAction", `{"action":"reset"}`, id)
	down := act(200, "stop")
	if down.text("status") != "EXITED" || down.number("cost") != 0 || down.at("runtime") != nil || down.at("ssh.direct") != nil {
		t.Errorf("a stopped pod: got %s", down.body)
	}
	act(409, "stop")
	act(409, "restart")
	act(200, "start")
	c.awaitStatus(t, id, "RUNNING")
	if raw := string(c.want(t, 200, "listPods", "").body); !strings.Contains(raw, id) {
		t.Errorf("list: got %.300s", raw)
	}
	act(204, "terminate")
	c.await(t, "the end of pod "+id, func() answer { return c.want(t, 200, "listPods", "") },
		func(a answer) bool { return !strings.Contains(string(a.body), id) })
	c.want(t, 404, "podAction", `{"action":"start"}`, "nope")
}

// podLogs reads the beginning of the log of a running pod, and again from its
// first event on.
func podLogs(t *testing.T, c *client, id string) {
	t.Helper()
	op := c.api.operation(t, "getPodLogs")
	read := func(query, lastID string, n int) []string {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		req := c.request(ctx, t, op.method, c.url+op.fill([]string{id})+query, c.key, nil)
		if lastID != "" {
			req.Header.Set("Last-Event-ID", lastID)
		}
		resp, err := c.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		c.note(op.id, resp.StatusCode)
		if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("Cache-Control") != "no-cache" {
			t.Fatalf("logs: got %d, %v", resp.StatusCode, resp.Header)
		}
		var events []string
		for lines := bufio.NewScanner(resp.Body); len(events) < n && lines.Scan(); {
			if after, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				events = append(events, after)
			}
		}
		return events
	}
	first := read("?tail=5000", "", 2)
	if len(first) < 2 || first[0] == first[1] {
		t.Fatalf("events: got %q, want two of them", first)
	}
	if again := read("", first[0], 1); len(again) == 0 || again[0] != first[1] {
		t.Errorf("after %s: got %q, want %s", first[0], again, first[1])
	}
	if got := c.raw(t, op.method, c.url+op.fill([]string{id})+"?tail=5001", c.key, nil); got.status != http.StatusUnprocessableEntity {
		t.Errorf("tail=5001: got %d, want 422", got.status)
	}
}

func podChange(t *testing.T, c *client) {
	t.Helper()
	id := c.want(t, 201, "createPod", c.podBody(`"env":{"A":"1"}`, `"mounts":{"persistent":{"size":10,"path":"/a"}}`)).text("id")
	c.tidy(t, "deletePod", id)
	c.want(t, 200, "updatePod", `{}`, id)
	a := c.want(t, 200, "updatePod", `{"name":"renamed","env":{"B":"2"},"entrypoint":["/bin/sh"],"cmd":["-c","true"],"mounts":{"persistent":{"size":10,"path":"/b"}}}`, id)
	if a.text("name") != "renamed" || a.at("env.A") != nil || a.text("env.B") != "2" || a.text("mounts.persistent.path") != "/b" {
		t.Errorf("got %s", a.body)
	}
	if diff := cmp.Diff([]any{"-c", "true"}, a.at("cmd")); diff != "" {
		t.Errorf("cmd (-want +got):\n%s", diff)
	}
	for body, status := range map[string]int{
		`{"gpu":{"id":"x"}}`: 422, `{"cloud":"SECURE"}`: 422, `{"startSsh":true}`: 422, `{"mounts":{"persistent":{"size":20}}}`: 422,
		`{"mounts":{"network":[]}}`: 400, `{"mounts":{"network":[{"volumeId":"v","path":"/p"}]}}`: 400, `{"templateId":"nope"}`: 404,
	} {
		c.want(t, status, "updatePod", body, id)
	}
	c.want(t, 404, "updatePod", `{}`, "nope")
	c.want(t, 200, "updatePod", `{"locked":true}`, id)
	c.want(t, 409, "podAction", `{"action":"stop"}`, id)
	c.want(t, 200, "updatePod", `{"locked":false}`, id)
	cleared := c.want(t, 200, "updatePod", `{"args":"","ports":[],"registry":null}`, id)
	if len(cleared.list("cmd")) != 0 || len(cleared.list("entrypoint")) != 0 || cleared.text("args") != "" {
		t.Errorf("cleared: got %s", cleared.body)
	}
	c.want(t, 204, "deletePod", "", id)
}

func podFromTemplate(t *testing.T, c *client) {
	t.Helper()
	tpl := c.want(t, 201, "createTemplate", `{"name":"contract","image":"t:1","env":{"A":"t","B":"t"},"ports":["80/http"],"startSsh":false,"startJupyter":false}`).text("id")
	c.tidy(t, "deleteTemplate", tpl)
	p := c.want(t, 201, "createPod", `{"name":"contract","templateId":"`+tpl+`","env":{"B":"b"},"gpu":{"id":"`+c.gpu+`"}}`)
	c.tidy(t, "deletePod", p.text("id"))
	if diff := cmp.Diff(map[string]any{"A": "t", "B": "b"}, p.at("env")); diff != "" {
		t.Errorf("env (-want +got):\n%s", diff)
	}
	if p.text("image") != "t:1" || !slices.Equal(p.list("ports"), []any{"80/http"}) || p.at("template") != nil {
		t.Errorf("got %s", p.body)
	}
	c.want(t, 200, "updateTemplate", `{"image":"t:2"}`, tpl)
	if got := c.want(t, 200, "getPod", "", p.text("id")).text("image"); got != "t:1" {
		t.Errorf("the pod followed its template to %s", got)
	}
	c.want(t, 204, "deletePod", "", p.text("id"))
}

// podCapacity: exhaustion is a 400 that says so in its detail and no more.
func podCapacity(t *testing.T, c *client) {
	t.Helper()
	c.needsEmulator(t)
	id := c.want(t, 201, "createPod", c.podBody()).text("id")
	c.want(t, 200, "podAction", `{"action":"stop"}`, id)
	if err := c.emulator.SetStock(c.gpu, "SECURE", "", 0); err != nil {
		t.Fatal(err)
	}
	a := c.want(t, 400, "createPod", c.podBody())
	if a.text("detail") == "" || a.at("errors") != nil {
		t.Errorf("got %s", a.body)
	}
	c.want(t, 400, "podAction", `{"action":"start"}`, id)
	if err := c.emulator.SetStock(c.gpu, "SECURE", "", 64); err != nil {
		t.Fatal(err)
	}
	c.want(t, 204, "deletePod", "", id)
}
