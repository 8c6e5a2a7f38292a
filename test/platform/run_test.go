package platform

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// jobs is a rig with one endpoint and its run interface.
type jobs struct {
	*rig
	h    http.Handler
	base string
}

func newJobs(t *testing.T, body string) *jobs {
	t.Helper()
	r := newRig(t, Options{})
	return &jobs{rig: r, h: r.RunHandler(), base: "/v2/" + r.newEndpoint(body)}
}

func (j *jobs) ask(status int, method, path, body string) answer {
	j.t.Helper()
	a := j.callOn(j.h, method, j.base+path, body)
	if a.status != status {
		j.t.Fatalf("%s %s %s: got status %d, want %d\n%s", method, path, body, a.status, status, a.raw)
	}
	return a
}

func (j *jobs) status(id string) string {
	j.t.Helper()
	return j.ask(200, "GET", "/status/"+id, "").text("status")
}

func TestJobLife(t *testing.T) {
	j := newJobs(t, queueEndpoint)
	made := j.ask(200, "POST", "/run", `{"input":{"x":[1,2.50]}}`)
	id := made.text("id")
	if diff := cmp.Diff(map[string]any{"id": id, "status": "IN_QUEUE"}, made.body); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
	j.Clock().Advance(4900 * time.Millisecond)
	if got := j.status(id); got != "IN_QUEUE" {
		t.Errorf("while the worker comes up: got %s", got)
	}
	j.Clock().Advance(600 * time.Millisecond)
	if got := j.status(id); got != "IN_PROGRESS" {
		t.Errorf("on the worker: got %s", got)
	}
	j.Clock().Advance(time.Minute)
	done := j.ask(200, "GET", "/status/"+id, "")
	want := map[string]any{
		"id": id, "status": "COMPLETED", "delayTime": 5000.0, "executionTime": 1000.0, "workerId": done.text("workerId"),
		"output": map[string]any{"echo": map[string]any{"x": []any{1.0, 2.5}}},
	}
	if diff := cmp.Diff(want, done.body); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	if !strings.Contains(done.raw, "2.50") {
		t.Errorf("a number lost its form: %s", done.raw)
	}
	if got := j.want(200, "GET", "/v2/serverless"+strings.TrimPrefix(j.base, "/v2")+"/workers", "").at("summary.total"); got != 0.0 {
		t.Errorf("an idle worker outlived its timeout: %v", got)
	}
	j.want(200, "GET", "/v2/billing/serverless", "").amount(t, "records.0.gpuAmount", 1.1*11/3600)
	health := j.ask(200, "GET", "/health", "")
	wantJobs := map[string]any{"completed": 1.0, "failed": 0.0, "inProgress": 0.0, "inQueue": 0.0, "retried": 0.0}
	if diff := cmp.Diff(wantJobs, health.at("jobs")); diff != "" {
		t.Errorf("health (-want +got):\n%s", diff)
	}
	j.Clock().Advance(30 * time.Minute)
	j.ask(404, "GET", "/status/"+id, "")
}

func TestJobOutcomes(t *testing.T) {
	tests := []struct {
		name, body string
		after      time.Duration
		want       string
		says       string
	}{
		{"raises", `{"input":{"emulator":{"error":"out of memory"}}}`, time.Minute, "FAILED", "out of memory"},
		{"output", `{"input":{"emulator":{"output":[1]}}}`, time.Minute, "COMPLETED", `"output":[1]`},
		{"takes its time", `{"input":{"emulator":{"delay_ms":60000}}}`, 30 * time.Second, "IN_PROGRESS", ""},
		{"too slow", `{"input":{"emulator":{"delay_ms":60000}},"policy":{"executionTimeout":5000}}`, 11 * time.Second, "TIMED_OUT", ""},
		{"endpoint's timeout", `{"input":{"emulator":{"delay_ms":600000}}}`, 400 * time.Second, "TIMED_OUT", ""},
		{"expires while running", `{"input":{"emulator":{"delay_ms":60000}},"policy":{"ttl":10000}}`, 11 * time.Second, "404", ""},
		{"one worker lost", `{"input":{"emulator":{"crashes":1}}}`, time.Minute, "COMPLETED", ""},
		{"too many workers lost", `{"input":{"emulator":{"crashes":9}}}`, time.Minute, "FAILED", "worker was lost"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j := newJobs(t, queueEndpoint)
			id := j.ask(200, "POST", "/run", tt.body).text("id")
			j.Clock().Advance(tt.after)
			a := j.callOn(j.h, "GET", j.base+"/status/"+id, "")
			got := a.text("status")
			if a.status == 404 {
				got = "404"
			}
			if got != tt.want || !strings.Contains(a.raw, tt.says) {
				t.Errorf("got %s, want %s with %q", a.raw, tt.want, tt.says)
			}
		})
	}
}

func TestEndpointWithoutTimeout(t *testing.T) {
	j := newJobs(t, strings.Replace(queueEndpoint, `"type"`, `"timeout":0,"type"`, 1))
	id := j.ask(200, "POST", "/run", `{"input":{"emulator":{"delay_ms":600000}}}`).text("id")
	j.Clock().Advance(20 * time.Minute)
	if got := j.status(id); got != "COMPLETED" {
		t.Errorf("got %s", got)
	}
}

func TestJobExpiresInTheQueue(t *testing.T) {
	j := newJobs(t, strings.Replace(queueEndpoint, `"name"`, `"workers":{"max":0},"name"`, 1))
	id := j.ask(200, "POST", "/run", `{"input":{},"policy":{"ttl":10000}}`).text("id")
	j.Clock().Advance(11 * time.Second)
	if got := j.status(id); got != "TIMED_OUT" {
		t.Errorf("got %s", got)
	}
	j.want(200, "PATCH", "/v2/serverless"+strings.TrimPrefix(j.base, "/v2"), `{"workers":{"max":1}}`)
	if diff := cmp.Diff(map[string]any{"id": id, "status": "IN_QUEUE"}, j.ask(200, "POST", "/retry/"+id, "").body); diff != "" {
		t.Errorf("retry (-want +got):\n%s", diff)
	}
	j.Clock().Advance(7 * time.Second)
	if got := j.status(id); got != "COMPLETED" {
		t.Errorf("after the retry: got %s", got)
	}
	j.ask(400, "POST", "/retry/"+id, "")
	j.ask(400, "POST", "/cancel/"+id, "")
	j.ask(404, "POST", "/cancel/nope", "")
	j.ask(404, "POST", "/retry/nope", "")
}

func TestCancelAndPurge(t *testing.T) {
	j := newJobs(t, strings.Replace(queueEndpoint, `"name"`, `"workers":{"max":1},"name"`, 1))
	running := j.ask(200, "POST", "/run", `{"input":{"emulator":{"delay_ms":60000}}}`).text("id")
	second := j.ask(200, "POST", "/run", `{"input":{}}`).text("id")
	third := j.ask(200, "POST", "/run", `{"input":{}}`).text("id")
	j.Clock().Advance(6 * time.Second)
	if list, _ := j.ask(200, "GET", "/requests", "").at("requests").([]any); len(list) != 3 {
		t.Errorf("requests: got %d", len(list))
	}
	if got := j.ask(200, "POST", "/cancel/"+second, "{}").text("status"); got != "CANCELLED" {
		t.Errorf("cancel of a queued job: got %s", got)
	}
	if diff := cmp.Diff(map[string]any{"removed": 1.0, "status": "completed"}, j.ask(200, "POST", "/purge-queue", "").body); diff != "" {
		t.Errorf("purge (-want +got):\n%s", diff)
	}
	j.ask(404, "GET", "/status/"+third, "")
	if got := j.status(running); got != "IN_PROGRESS" {
		t.Errorf("a purge touched what was running: %s", got)
	}
	a := j.ask(200, "POST", "/cancel/"+running, "")
	if a.text("status") != "CANCELLED" || a.at("executionTime") != 1000.0 {
		t.Errorf("cancel of a running job: got %s", a.raw)
	}
	j.ask(200, "POST", "/purge-queue", "")
	j.ask(429, "POST", "/purge-queue", "")
	j.Clock().Advance(10 * time.Second)
	j.ask(200, "POST", "/purge-queue", "")
}

func TestScaling(t *testing.T) {
	workers := func(j *jobs) any {
		return j.want(200, "GET", "/v2/serverless"+strings.TrimPrefix(j.base, "/v2")+"/workers", "").at("summary.total")
	}
	slow := `{"input":{"emulator":{"delay_ms":100000}}}`
	j := newJobs(t, queueEndpoint)
	for range 5 {
		j.ask(200, "POST", "/run", slow)
	}
	if got := workers(j); got != 1.0 {
		t.Errorf("by delay, at once: got %v workers, want 1", got)
	}
	j.Clock().Advance(4 * time.Second)
	if got := workers(j); got != 3.0 {
		t.Errorf("by delay, when the queue waited long enough: got %v workers, want workers.max", got)
	}
	c := newJobs(t, strings.Replace(queueEndpoint, `{"type":"QUEUE_DELAY","queueDelay":4}`, `{"type":"REQUEST_COUNT","requestCount":2}`, 1))
	c.ask(200, "POST", "/run", `{"input":{},"policy":{"lowPriority":true}}`)
	if got := workers(c); got != 0.0 {
		t.Errorf("a job of low priority started %v workers", got)
	}
	for range 3 {
		c.ask(200, "POST", "/run", slow)
	}
	if got := workers(c); got != 2.0 {
		t.Errorf("by count: got %v workers for 3 jobs of 2 each, want 2", got)
	}
	f := newJobs(t, strings.Replace(queueEndpoint, `"name"`, `"flashboot":"FLASHBOOT","name"`, 1))
	id := f.ask(200, "POST", "/run", `{"input":{}}`).text("id")
	f.Clock().Advance(2600 * time.Millisecond)
	if got := f.status(id); got != "IN_PROGRESS" {
		t.Errorf("FLASHBOOT halves the cold start: got %s", got)
	}
}

func TestStream(t *testing.T) {
	j := newJobs(t, queueEndpoint)
	id := j.ask(200, "POST", "/run", `{"input":{"emulator":{"delay_ms":4000,"chunks":["a",{"b":1},"c","d"],"aggregate":true}}}`).text("id")
	steps := []struct {
		after time.Duration
		want  string
	}{
		{0, `{"status":"IN_QUEUE","stream":[]}`},
		{7 * time.Second, `{"status":"IN_PROGRESS","stream":[{"output":"a"},{"output":{"b":1}}]}`},
		{0, `{"status":"IN_PROGRESS","stream":[]}`},
		{10 * time.Second, `{"status":"COMPLETED","stream":[{"output":"c"},{"output":"d"}]}`},
		{0, `{"status":"COMPLETED","stream":[]}`},
	}
	for i, s := range steps {
		j.Clock().Advance(s.after)
		if got := j.ask(200, "GET", "/stream/"+id, "").raw; got != s.want {
			t.Errorf("look %d: got %s, want %s", i, got, s.want)
		}
	}
	if got := j.ask(200, "GET", "/status/"+id, "").raw; !strings.Contains(got, `"output":["a",{"b":1},"c","d"]`) {
		t.Errorf("aggregated: got %s", got)
	}
	j.ask(404, "GET", "/stream/nope", "")
}

func TestRunRefusals(t *testing.T) {
	j := newJobs(t, queueEndpoint)
	for _, body := range []string{
		"", "{", "[]", "null", `{}`, `{"input":1}`, `{"input":{},"policy":{"executionTimeout":4999}}`, `{"input":{},"policy":{"ttl":9999}}`,
		`{"input":{},"policy":{"ttl":604800001}}`, `{"input":{},"policy":1}`, `{"input":{},"webhook":1}`, `{"input":{"emulator":{"bogus":1}}}`,
	} {
		if a := j.ask(400, "POST", "/run", body); a.text("error") == "" {
			t.Errorf("%s: got %s", body, a.raw)
		}
	}
	j.ask(400, "POST", "/runsync?wait=999", `{"input":{}}`)
	j.ask(400, "POST", "/runsync?wait=300001", `{"input":{}}`)
	j.ask(404, "GET", "/nothing", "")
	j.ask(405, "GET", "/run", "")
	big := `{"input":{"a":"` + strings.Repeat("a", maxRun) + `"}}`
	j.ask(413, "POST", "/run", big)
	keyless := &jobs{rig: j.as(""), h: j.h, base: j.base}
	keyless.ask(401, "POST", "/run", `{"input":{}}`)
	stranger := newRig(t, Options{Accounts: []Account{{ID: "a", Key: DefaultKey}, {ID: "b", Key: "b"}}})
	id := stranger.newEndpoint(queueEndpoint)
	(&jobs{rig: stranger.as("b"), h: stranger.RunHandler(), base: "/v2/" + id}).ask(404, "POST", "/run", `{"input":{}}`)
	lb := stranger.newEndpoint(`{"name":"l","image":"i","type":"LOAD_BALANCER","gpu":{"pools":["ADA_24"]},"scaling":{"type":"REQUEST_COUNT","requestCount":2}}`)
	(&jobs{rig: stranger, h: stranger.RunHandler(), base: "/v2/" + lb}).ask(400, "POST", "/run", `{"input":{}}`)

	bare := httptest.NewRequest(http.MethodGet, j.base+"/health", nil)
	bare.Header.Set("Authorization", DefaultKey)
	rec := httptest.NewRecorder()
	j.h.ServeHTTP(rec, bare)
	if rec.Code != 200 {
		t.Errorf("a bare key: got %d", rec.Code)
	}
	if rec.Header().Get("RateLimit") != "" {
		t.Error("the run interface has no rate headers")
	}
}

// eventually advances the clock in the background, from one time that is waited
// for to the next, until done is closed, for
// calls that wait for the emulator's time.
func eventually(c *Clock, done <-chan struct{}) (stopped <-chan struct{}) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case <-done:
				return
			default:
				if !c.AdvanceToNext() {
					runtime.Gosched()
				}
			}
		}
	}()
	return over
}

// waiting runs a call while the clock goes on.
func (j *jobs) waiting(status int, method, path, body string) answer {
	j.t.Helper()
	done := make(chan struct{})
	stopped := eventually(j.Clock(), done)
	a := j.callOn(j.h, method, j.base+path, body)
	close(done)
	<-stopped
	if a.status != status {
		j.t.Fatalf("%s %s %s: got %d, want %d: %s", method, path, body, a.status, status, a.raw)
	}
	return a
}

func TestRunSync(t *testing.T) {
	j := newJobs(t, queueEndpoint)
	a := j.waiting(200, "POST", "/runsync", `{"input":{"emulator":{"output":"done"}}}`)
	if a.text("status") != "COMPLETED" || a.text("output") != "done" || !strings.HasPrefix(a.text("id"), "sync-") {
		t.Errorf("got %s", a.raw)
	}
	slow := j.waiting(200, "POST", "/runsync?wait=1000", `{"input":{"emulator":{"delay_ms":30000}}}`)
	if got := slow.text("status"); got != "IN_PROGRESS" && got != "IN_QUEUE" {
		t.Errorf("when the wait ends first: got %s", slow.raw)
	}
	if got := j.waiting(200, "GET", "/status-sync/"+slow.text("id"), "").text("status"); got != "COMPLETED" {
		t.Errorf("status-sync: got %s", got)
	}
	j.Clock().Advance(2 * time.Minute)
	j.ask(404, "GET", "/status/"+a.text("id"), "")
}

func TestChat(t *testing.T) {
	j := newJobs(t, strings.Replace(queueEndpoint, `"name"`, `"env":{"MODEL_NAME":"small"},"name"`, 1))
	if got := j.ask(200, "GET", "/openai/v1/models", "").text("data.0.id"); got != "small" {
		t.Errorf("models: got %q", got)
	}
	ask := `{"model":"small","messages":[{"role":"user","content":"hello there"}]}`
	a := j.waiting(200, "POST", "/openai/v1/chat/completions", ask)
	if got := a.text("choices.0.message.content"); got != "You said: hello there" {
		t.Errorf("chat: got %s", a.raw)
	}
	s := j.waiting(200, "POST", "/openai/v1/chat/completions", strings.Replace(ask, `"model"`, `"stream":true,"max_tokens":3,"model"`, 1))
	if s.header.Get("Content-Type") != "text/event-stream" || strings.Count(s.raw, "data: ") != 4 || !strings.HasSuffix(s.raw, "data: [DONE]\n\n") ||
		!strings.Contains(s.raw, `"delta":{"content":" hello"}`) {
		t.Errorf("stream: got %s", s.raw)
	}
	c := j.waiting(200, "POST", "/openai/v1/completions", `{"model":"small","prompt":"hi"}`)
	if got := c.text("choices.0.text"); got != "You said: hi" {
		t.Errorf("completion: got %s", c.raw)
	}
	j.ask(404, "POST", "/openai/v1/chat/completions", strings.Replace(ask, "small", "large", 1))
	for _, body := range []string{`[]`, `{"model":"small"}`, `{"model":"small","messages":[]}`, `{"model":"small","messages":[{"role":"user"}]}`, `{"model":"small","messages":[1]}`} {
		j.ask(400, "POST", "/openai/v1/chat/completions", body)
	}
}

// A model takes what model servers take: content in parts, none beside tool calls, several prompts, tokens, tools and formats.
func TestChatTakesWhatModelServersTake(t *testing.T) {
	j := newJobs(t, strings.Replace(queueEndpoint, `"name"`, `"env":{"MODEL_NAME":"small"},"name"`, 1))
	const tools = `"tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object"}}}],`
	for name, tt := range map[string]struct{ path, body, at, want string }{
		"parts":           {"/chat/completions", `"messages":[{"role":"user","content":[{"type":"text","text":"hello"},{"type":"image_url","image_url":{"url":"data:,"}}]}]`, "choices.0.message.content", "You said: hello"},
		"tool calls":      {"/chat/completions", `"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"weather","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"rain"}]`, "choices.0.message.content", "You said: rain"},
		"tools":           {"/chat/completions", tools + `"messages":[{"role":"user","content":"hi"}]`, "choices.0.message.content", "You said: hi"},
		"required tool":   {"/chat/completions", tools + `"tool_choice":"required","messages":[{"role":"user","content":"hi"}]`, "choices.0.message.tool_calls.0.function.name", "weather"},
		"named tool":      {"/chat/completions", tools + `"tool_choice":{"type":"function","function":{"name":"weather"}},"messages":[{"role":"user","content":"hi"}]`, "choices.0.finish_reason", "tool_calls"},
		"an object":       {"/chat/completions", `"response_format":{"type":"json_object"},"messages":[{"role":"user","content":"hi"}]`, "choices.0.message.content", `{"text":"You said: hi"}`},
		"a schema":        {"/chat/completions", `"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}}}}},"messages":[{"role":"user","content":"hi"}]`, "choices.0.message.content", `{"city":"You said: hi","days":0}`},
		"choices":         {"/chat/completions", `"n":2,"messages":[{"role":"user","content":"hi"}]`, "choices.1.message.content", "You said: hi"},
		"prompts":         {"/completions", `"prompt":["one","two"]`, "choices.1.text", "You said: two"},
		"tokens":          {"/completions", `"prompt":[1,2]`, "choices.0.text", "You said: 1 2"},
		"lists of tokens": {"/completions", `"prompt":[[1,2],[3]]`, "choices.1.text", "You said: 3"},
		"base64":          {"/embeddings", `"encoding_format":"base64","input":["one two"]`, "data.0.embedding", "AADgQAAAAEA="},
		"a response":      {"/responses", `"input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]}]`, "output.0.content.0.text", "You said: hi"},
	} {
		if a := j.waiting(200, "POST", "/openai/v1"+tt.path, `{"model":"small",`+tt.body+`}`); a.text(tt.at) != tt.want {
			t.Errorf("%s: %s, want %s %q", name, a.raw, tt.at, tt.want)
		}
	}
	if a := j.waiting(200, "POST", "/openai/v1/responses", `{"model":"small","input":"hi"}`); a.at("created_at") == nil {
		t.Errorf("a response: %s, want created_at", a.raw)
	}
	stream := j.waiting(200, "POST", "/openai/v1/completions", `{"model":"small","stream":true,"max_tokens":1,"prompt":["one","two"]}`)
	if !strings.Contains(stream.raw, `"index":1,"text":"You"`) {
		t.Errorf("a stream for two prompts: %s", stream.raw)
	}
	for path, body := range map[string]string{
		"/completions":      `{"model":"small","prompt":[]}`,
		"/embeddings":       `{"model":"small","input":"a","encoding_format":"hex"}`,
		"/chat/completions": `{"model":"small","messages":[{"role":"user","content":null}]}`,
	} {
		j.ask(400, "POST", "/openai/v1"+path, body)
	}
}

func TestPublicVideo(t *testing.T) {
	r := newRig(t, Options{})
	j := &jobs{rig: r, h: r.RunHandler(), base: "/v2/wan-2-2-t2v-720-lora"}
	input := func(more string) string {
		return `{"input":{"prompt":"waves","image":"https://example.test/a.png"` + more + `}}`
	}
	five := j.waiting(200, "POST", "/runsync", input(""))
	if five.text("status") != "COMPLETED" || five.at("output.cost") != 0.35 || five.text("output.video_url") == "" || five.text("workerId") == "" {
		t.Errorf("five seconds: got %s", five.raw)
	}
	id := j.ask(200, "POST", "/run", input(`,"duration":8`)).text("id")
	j.Clock().Advance(time.Minute)
	if got := j.ask(200, "GET", "/status/"+id, "").at("output.cost"); got != 0.56 {
		t.Errorf("eight seconds: got cost %v", got)
	}
	failed := j.waiting(400, "POST", "/runsync", input(`,"high_noise_loras":[{"path":"https://gone.invalid/x.safetensors","scale":1}]`))
	if failed.text("status") != "FAILED" || !strings.Contains(failed.text("error"), "LoRA") {
		t.Errorf("a LoRA that cannot be loaded: got %s", failed.raw)
	}
	for _, more := range []string{`,"duration":6`, `,"duration":"5"`, `,"low_noise_loras":[{"path":"x"}]`, `,"low_noise_loras":{}`, `,"seed":"x"`} {
		j.ask(400, "POST", "/run", input(more))
	}
	j.ask(400, "POST", "/run", `{"input":{"prompt":"waves"}}`)
	bill := r.want(200, "GET", "/v2/billing/endpoints?lastN=1", "")
	bill.amount(t, "records.0.totalAmount", 0.91)
	left, _, _ := r.Balance("default")
	bill.amount(t, "metadata.totals.totalAmount", DefaultBalance-left)
	if err := r.SetBalance("default", 0.1); err != nil {
		t.Fatal(err)
	}
	j.ask(402, "POST", "/run", input(""))
	image := &jobs{rig: r, h: r.RunHandler(), base: "/v2/black-forest-labs-flux-1-schnell"}
	cheap := image.waiting(200, "POST", "/runsync", `{"input":{"prompt":"a cat","width":512,"height":512}}`)
	cheap.amount(t, "output.cost", 0.0006)
}

func TestBalanced(t *testing.T) {
	r := newRig(t, Options{Strict: true})
	h := r.RunHandler()
	id := r.newEndpoint(`{"name":"l","image":"i","type":"LOAD_BALANCER","gpu":{"pools":["ADA_24"]},"scaling":{"type":"REQUEST_COUNT","requestCount":2}}`)
	ask := func(method, path, body string) *httptest.ResponseRecorder {
		req := httptest.NewRequest(method, "http://"+id+".run.test"+path, bytes.NewReader([]byte(body)))
		req.Header.Set("Authorization", "Bearer "+DefaultKey)
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		return rec
	}
	if got := ask("GET", "/ping", "").Code; got != 204 {
		t.Errorf("ping without a worker: got %d, want 204", got)
	}
	done := make(chan struct{})
	stopped := eventually(r.Clock(), done)
	a := ask("DELETE", "/any/path?q=1", "free form")
	close(done)
	<-stopped
	if a.Code != 200 || a.Header().Get(workerHeader) == "" || !strings.Contains(a.Body.String(), `"method":"DELETE","path":"/any/path","query":"q=1","body":"free form"`) {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
	if got := ask("GET", "/ping", "").Code; got != 200 {
		t.Errorf("ping with a worker: got %d, want 200", got)
	}
	r.want(200, "PATCH", "/v2/serverless/"+id, `{"workers":{"max":0}}`)
	if got := ask("GET", "/x", ""); got.Code != 503 || got.Body.String() != `{"error":"no workers available"}` {
		t.Errorf("without workers: got %d %s", got.Code, got.Body)
	}
	queue := r.newEndpoint(queueEndpoint)
	req := httptest.NewRequest(http.MethodGet, "http://"+queue+".run.test/x", nil)
	req.Header.Set("Authorization", "Bearer "+DefaultKey)
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	if rec.Code != 400 || rec.Body.String() != `{"error":"not allowed for QB API"}` {
		t.Errorf("a queue endpoint: got %d %s", rec.Code, rec.Body)
	}
}
