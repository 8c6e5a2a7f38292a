package runs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// TestJobs walks each operation on jobs.
func TestJobs(t *testing.T) {
	r := newRig(t)
	base := "/v2/" + r.endpoint(t)
	made := r.want(t, 200, "POST", base+"/run", `{"input":{"x":[1,2.50]},"policy":{"ttl":6000000},"webhook":"https://hooks.example/a?b=c"}`)
	id := fmt.Sprint(made["id"])
	if made["status"] != "IN_QUEUE" || id == "" {
		t.Errorf("run: %v", made)
	}
	done := r.want(t, 200, "GET", base+"/status-sync/"+id+"?wait=300000", "")
	want := map[string]any{"echo": map[string]any{"x": []any{1.0, 2.5}}}
	if diff := cmp.Diff(want, done["output"]); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if got := r.want(t, 200, "GET", base+"/status/"+id+"?ttl=6000", ""); got["status"] != "COMPLETED" {
		t.Errorf("status: %v", got)
	}
	sync := r.want(t, 200, "POST", base+"/runsync?wait=300000", `{"input":{"emulator":{"chunks":["a","b"]}}}`)
	chunks := r.want(t, 200, "GET", fmt.Sprintf("%s/stream/%v", base, sync["id"]), "")
	if diff := cmp.Diff([]any{map[string]any{"output": "a"}, map[string]any{"output": "b"}}, chunks["stream"]); diff != "" {
		t.Errorf("stream (-want +got):\n%s", diff)
	}
	failed := r.want(t, 200, "POST", base+"/runsync?wait=300000", `{"input":{"emulator":{"error":"out of memory"}}}`)
	if failed["status"] != "FAILED" || failed["error"] != "out of memory" {
		t.Errorf("a job that raises: %v", failed)
	}
	if got := r.want(t, 200, "POST", fmt.Sprintf("%s/retry/%v", base, failed["id"]), ""); got["status"] != "IN_QUEUE" {
		t.Errorf("retry: %v", got)
	}
	slow := r.want(t, 200, "POST", base+"/run", `{"input":{"emulator":{"delay_ms":600000}}}`)
	if got := r.want(t, 200, "POST", fmt.Sprintf("%s/cancel/%v", base, slow["id"]), "{}"); got["status"] != "CANCELLED" {
		t.Errorf("cancel: %v", got)
	}
	if got := r.want(t, 200, "POST", base+"/purge-queue", ""); got["status"] != "completed" {
		t.Errorf("purge-queue: %v", got)
	}
	if got := r.want(t, 200, "GET", base+"/health", ""); got["jobs"] == nil || got["workers"] == nil {
		t.Errorf("health: %v", got)
	}
	if got := r.want(t, 200, "GET", base+"/requests", ""); got["requests"] == nil {
		t.Errorf("requests: %v", got)
	}
}

// Clients of the run interface that send the bare key are served, as by the platform.
func TestABareKey(t *testing.T) {
	r := newRig(t)
	a := r.ask(t, "POST", "/v2/"+r.endpoint(t)+"/run", "", `{"input":{}}`, "Authorization: key_research")
	if a.Status != 200 || !strings.Contains(a.Body, "IN_QUEUE") {
		t.Errorf("%d %s, want 200", a.Status, a.Body)
	}
	if a := r.ask(t, "GET", "/v2/pods", "", "", "Authorization: key_research"); a.Status != 401 {
		t.Errorf("a list of pods: %d %s, want 401", a.Status, a.Body)
	}
}

// TestRefusals: every refusal has the shape of the run interface.
func TestRefusals(t *testing.T) {
	r := newRig(t)
	base := "/v2/" + r.endpoint(t)
	big := `{"input":"` + strings.Repeat("x", 10<<20) + `"}`
	for name, tc := range map[string]struct {
		method, target, key, body string
		header                    []string
		status                    int
		says                      string
	}{
		"a bare unknown key":  {"POST", base + "/run", "", `{"input":{}}`, []string{"Authorization: key_nobody"}, 401, "unknown key"},
		"no key":              {"POST", base + "/run", "", `{"input":{}}`, nil, 401, "missing key: send"},
		"another verb":        {"GET", base + "/run", "key_research", "", nil, 405, "method"},
		"no endpoint":         {"POST", "/v2/nothing/run", "key_research", `{"input":{}}`, nil, 404, "not found"},
		"no job":              {"GET", base + "/status/nothing", "key_research", "", nil, 404, "not found"},
		"no verb below":       {"GET", base + "/status", "key_research", "", nil, 404, "no operation"},
		"escaped id":          {"POST", "/v2/%65ndpoint/run", "key_research", `{"input":{}}`, nil, 404, "no operation"},
		"escaped dots":        {"POST", "/v2/%2e%2e/run", "key_research", `{"input":{}}`, nil, 400, "path"},
		"not an id":           {"POST", "/v2/a+b/run", "key_research", `{"input":{}}`, nil, 400, "identifier"},
		"no input":            {"POST", base + "/run", "key_research", `{}`, nil, 400, "the body of a job must contain the field 'input'"},
		"no input, in time":   {"POST", base + "/runsync", "key_research", `{"prompt":"a"}`, nil, 400, "the body of a job must contain the field 'input'"},
		"unknown member":      {"POST", base + "/run", "key_research", `{"input":{},"webhookV3":"https://a.example"}`, nil, 422, "validation"},
		"input twice":         {"POST", base + "/run", "key_research", `{"input":{"a":1},"input":{"a":2}}`, nil, 400, "JSON"},
		"twice within input":  {"POST", base + "/run", "key_research", `{"input":{"a":1,"\u0061":2}}`, nil, 400, "JSON"},
		"time too short":      {"POST", base + "/run", "key_research", `{"input":{},"policy":{"executionTimeout":4999}}`, nil, 422, "validation"},
		"life too long":       {"POST", base + "/run", "key_research", `{"input":{},"policy":{"ttl":604800001}}`, nil, 422, "validation"},
		"plain webhook":       {"POST", base + "/run", "key_research", `{"input":{},"webhook":"http://a.example"}`, nil, 422, "validation"},
		"webhook with a user": {"POST", base + "/run", "key_research", `{"input":{},"webhook":"https://a.example@evil.example/"}`, nil, 422, "validation"},
		"webhook, backslash":  {"POST", base + "/run", "key_research", `{"input":{},"webhook":"https://a.example\\@evil.example/"}`, nil, 422, "validation"},
		"wait too long":       {"POST", base + "/runsync?wait=300001", "key_research", `{"input":{}}`, nil, 422, "validation"},
		"too large":           {"POST", base + "/run", "key_research", big, nil, 413, "exceeds 10485760 bytes"},
		"too large, in chunks": {
			"POST", base + "/run", "key_research", world.Chunked(big[:5<<20], big[5<<20:]), []string{"Transfer-Encoding: chunked"}, 413, "exceeds 10485760 bytes",
		},
		"declared too large": {"POST", base + "/run", "", "x", []string{"Content-Length: 99999999"}, 413, "exceeds"},
		"no job at all":      {"POST", base + "/cancel/abc", "key_research", strings.Repeat(" ", 102401), nil, 413, "exceeds 102400 bytes"},
		"coded":              {"POST", base + "/run", "key_research", `{"input":{}}`, []string{"Content-Encoding: gzip"}, 415, "compressed request bodies are not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			a := r.ask(t, tc.method, tc.target, tc.key, tc.body, tc.header...)
			text, _ := decoded(t, a.Body)["error"].(string)
			if a.Status != tc.status || !strings.Contains(text, tc.says) || a.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%d %s, %s; want %d and an error with %q", a.Status, a.Header.Get("Content-Type"), a.Body, tc.status, tc.says)
			}
		})
	}
	if calls := r.platform.CallsTo("run"); len(calls) != 1 {
		t.Errorf("%d runs reached the platform, want the one that names no endpoint", len(calls))
	}
}

// TestReservedWords: a collection of the REST API is never taken for an endpoint.
func TestReservedWords(t *testing.T) {
	r := newRig(t)
	for _, target := range []string{"/v2/pods/run", "/v2/serverless/runsync", "/v2/catalog/health", "/v2/openapi.json/run", "/v2/nothing", "/v2/nothing/else"} {
		a := r.ask(t, "POST", target, "key_research", `{"input":{}}`)
		if a.Status != 404 && a.Status != 405 || a.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s, want a refusal of the REST API", target, a.Status, a.Body)
		}
	}
	if calls := r.platform.Calls(); len(calls) != 0 {
		t.Errorf("calls reached the platform: %v", calls)
	}
}

// TestWhatIsSent: the worker gets the input that was judged as it was spelled, and
// the rest of the job in canonical form.
func TestWhatIsSent(t *testing.T) {
	r := newRig(t)
	base := "/v2/" + r.endpoint(t)
	long := strings.Repeat("y", 9<<20)
	r.want(t, 200, "POST", base+"/run", `{ "policy" : {"ttl":6000000}, "input" : {"z": "`+long+`", "b":[1.50,1e3,"\u00e9\u001b"], "a":{"y":null,"x":true}} }`)
	calls := r.platform.CallsTo("run")
	want := `{"input":{"z": "` + long + `", "b":[1.50,1e3,"\u00e9\u001b"], "a":{"y":null,"x":true}},"policy":{"ttl":6000000}}`
	if len(calls) != 1 || string(calls[0].Body) != want {
		t.Fatalf("%d calls; the body differs", len(calls))
	}
	if h := calls[0].Header; h.Get("Authorization") != "Bearer pk-acme-"+canary {
		t.Errorf("Authorization: %q", h.Get("Authorization"))
	}
}

// TestSizes: a body of any size is sent, from one that fits a single read to one that is written
// in pieces.
func TestSizes(t *testing.T) {
	r := newRig(t)
	base := "/v2/" + r.endpoint(t)
	for i, n := range []int{10, 60 << 10, 100 << 10, 150 << 10, 300 << 10, 2 << 20} {
		job := `{"input":{"text":"` + strings.Repeat("x", n) + `"}}`
		chat := strings.Replace(hello, "good morning", strings.Repeat("x", n), 1)
		r.want(t, 200, "POST", base+"/run", job)
		r.want(t, 200, "POST", base+"/openai/v1/chat/completions", chat)
		runs, chats := r.platform.CallsTo("run"), r.platform.CallsTo("chatCompletions")
		if len(runs) != i+1 || string(runs[i].Body) != job || len(chats) != i+1 || len(chats[i].Body) != len(chat) {
			t.Errorf("%d bytes: %d jobs and %d chats reached the platform", n, len(runs), len(chats))
		}
	}
}

// TestMemoryIsBounded: bodies beyond the memory for them are refused before they
// are read, and the memory comes back.
func TestMemoryIsBounded(t *testing.T) {
	r := newRig(t, top("run: {memory: 21000000}"))
	base := "/v2/" + r.endpoint(t)
	big := `{"input":{"x":"` + strings.Repeat("x", 9<<20) + `"}}`
	first := world.Dial(t, r.addr)
	raw := world.Request("POST", base+"/run", "key_research", big)
	if _, err := first.Write([]byte(raw[:len(raw)-1])); err != nil {
		t.Fatal(err)
	}
	second := world.Dial(t, r.addr)
	if _, err := second.Write([]byte(raw[:len(raw)-1])); err != nil {
		t.Fatal(err)
	}
	a := r.ask(t, "POST", base+"/run", "key_research", big)
	if a.Status != 503 || a.Header.Get("Retry-After") == "" {
		t.Fatalf("a third body: %d %v %s", a.Status, a.Header, a.Body)
	}
	_, _ = first.Close(), second.Close()
	for range 100 {
		if a = r.ask(t, "POST", base+"/run", "key_research", big); a.Status == 200 {
			return
		}
	}
	t.Errorf("the memory did not come back: %d %s", a.Status, a.Body)
}

// TestQuota: runs are counted like everything else, and the platform's own 429 is
// passed on.
func TestQuota(t *testing.T) {
	r := newRig(t)
	base := "/v2/" + r.endpoint(t)
	for range 2 {
		if a := r.ask(t, "GET", base+"/health", "key_tiny", ""); a.Status != 200 || a.Header.Get("RateLimit") == "" && a.Header.Get("Ratelimit") == "" {
			t.Errorf("within the quota: %d %v", a.Status, a.Header)
		}
	}
	a := r.ask(t, "GET", base+"/health", "key_tiny", "")
	if text, _ := decoded(t, a.Body)["error"].(string); a.Status != 429 || a.Header.Get("Retry-After") == "" || !strings.Contains(text, "rate limit") {
		t.Errorf("beyond the quota: %d %v %s", a.Status, a.Header, a.Body)
	}
	r.platform.AddFault(platform.Fault{Operation: "purgeQueue", Kind: platform.FaultRateLimit, Times: 1})
	a = r.ask(t, "POST", base+"/purge-queue", "key_research", "")
	if text, _ := decoded(t, a.Body)["error"].(string); a.Status != 429 || a.Header.Get("Retry-After") == "" || !strings.Contains(text, "rate limit") {
		t.Errorf("beyond the platform's quota: %d %s", a.Status, a.Body)
	}
}
