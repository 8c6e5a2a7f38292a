package contract

import (
	"net/http"
	"strings"
	"testing"
)

// job calls the run interface of an endpoint.
func (c *client) job(t *testing.T, status int, method, endpoint, path, body string) answer {
	t.Helper()
	var payload []byte
	if body != "" {
		payload = []byte(body)
	}
	a := c.raw(t, method, c.runURL+"/v2/"+endpoint+path, c.key, payload)
	if a.status != status {
		t.Fatalf("%s %s: got %d, want %d: %.300s", method, path, a.status, status, a.body)
	}
	return a
}

func runInterface(t *testing.T, c *client) {
	t.Helper()
	if c.runURL == "" {
		t.Skip("TOLLGATE_CONTRACT_RUN_URL is not set")
	}
	id := c.want(t, 201, "createEndpoint", queueBody).text("id")
	c.tidy(t, "deleteEndpoint", id)
	made := c.job(t, 200, http.MethodPost, id, "/run", `{"input":{"prompt":"hello"}}`)
	job := made.text("id")
	if made.text("status") != "IN_QUEUE" || job == "" {
		t.Errorf("run: got %s", made.body)
	}
	done := c.await(t, "job "+job, func() answer { return c.job(t, 200, http.MethodGet, id, "/status/"+job, "") },
		func(a answer) bool { return a.text("status") != "IN_QUEUE" && a.text("status") != "IN_PROGRESS" })
	if done.text("id") != job || done.at("delayTime") == nil || done.at("executionTime") == nil {
		t.Errorf("a job that is over: got %s", done.body)
	}
	c.job(t, 404, http.MethodGet, id, "/status/nope", "")
	c.job(t, 400, http.MethodPost, id, "/run", `{}`)
	c.with("").job(t, 401, http.MethodPost, id, "/run", `{"input":{}}`)
	c.job(t, 404, http.MethodPost, "nope", "/run", `{"input":{}}`)
	if h := c.job(t, 200, http.MethodGet, id, "/health", ""); h.at("jobs.completed") == nil || h.at("workers.idle") == nil {
		t.Errorf("health: got %s", h.body)
	}
	c.want(t, 200, "updateEndpoint", `{"workers":{"min":0,"max":0}}`, id)
	queued := c.job(t, 200, http.MethodPost, id, "/run", `{"input":{}}`).text("id")
	if got := c.job(t, 200, http.MethodPost, id, "/cancel/"+queued, "").text("status"); got != "CANCELLED" {
		t.Errorf("cancel: got %s", got)
	}
	c.job(t, 200, http.MethodPost, id, "/run", `{"input":{}}`)
	if p := c.job(t, 200, http.MethodPost, id, "/purge-queue", ""); p.number("removed") != 1 || p.text("status") != "completed" {
		t.Errorf("purge: got %s", p.body)
	}
	runOnEmulator(t, c, id)
}

// runOnEmulator is the part that needs workers which do as they are told.
func runOnEmulator(t *testing.T, c *client, id string) {
	t.Helper()
	c.needsEmulator(t)
	c.want(t, 200, "updateEndpoint", `{"workers":{"min":0,"max":1}}`, id)
	// Results are kept as long as their caller was ready to wait, a minute at least;
	// that is short on a clock that runs fast.
	sync := c.job(t, 200, http.MethodPost, id, "/runsync?wait=300000", `{"input":{"emulator":{"output":{"a":1}}}}`)
	if sync.text("status") != "COMPLETED" || sync.number("output.a") != 1 || !strings.HasPrefix(sync.text("id"), "sync-") {
		t.Errorf("runsync: got %s", sync.body)
	}
	failed := c.job(t, 200, http.MethodPost, id, "/runsync?wait=300000", `{"input":{"emulator":{"error":"no"}}}`)
	if failed.text("status") != "FAILED" || failed.text("error") != "no" {
		t.Errorf("a handler that raises: got %s", failed.body)
	}
	if again := c.job(t, 200, http.MethodPost, id, "/retry/"+failed.text("id"), ""); again.text("status") != "IN_QUEUE" || again.text("id") != failed.text("id") {
		t.Errorf("retry: got %s", again.body)
	}
	c.job(t, 400, http.MethodPost, id, "/retry/"+sync.text("id"), "")
	chunks := c.job(t, 200, http.MethodPost, id, "/run", `{"input":{"emulator":{"chunks":[1,2,3]}}}`).text("id")
	var got []any
	c.await(t, "the stream", func() answer { return c.job(t, 200, http.MethodGet, id, "/stream/"+chunks, "") }, func(a answer) bool {
		got = append(got, a.list("stream")...)
		return a.text("status") == "COMPLETED" && len(a.list("stream")) == 0
	})
	if len(got) != 3 {
		t.Errorf("stream: got %v, want three chunks", got)
	}
	model := c.job(t, 200, http.MethodGet, id, "/openai/v1/models", "").text("data.0.id")
	chat := c.job(t, 200, http.MethodPost, id, "/openai/v1/chat/completions", `{"model":"`+model+`","messages":[{"role":"user","content":"hi"}]}`)
	if chat.text("choices.0.message.content") == "" {
		t.Errorf("chat: got %s", chat.body)
	}
	video := c.job(t, 200, http.MethodPost, "wan-2-2-t2v-720-lora", "/runsync", `{"input":{"prompt":"p","image":"https://example.test/i.png","duration":8}}`)
	if video.number("output.cost") != 0.56 || video.text("output.video_url") == "" {
		t.Errorf("image to video: got %s", video.body)
	}
}
