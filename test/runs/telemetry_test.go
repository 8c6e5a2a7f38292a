package runs

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestJobsAreMeasured: what answers tell of jobs, tokens and costs is in the log
// and in the metrics.
func TestJobsAreMeasured(t *testing.T) {
	for name, tc := range map[string]struct {
		target, body, answer, kind string
		log                        map[string]any
		metric                     string
	}{
		"job": {
			"/v2/e1/runsync", `{"input":{}}`, `{"id":"a","status":"COMPLETED","delayTime":1500,"executionTime":250,"output":{"cost":0.35}}`, "application/json",
			map[string]any{"job_queued_ms": 1500.0, "job_executed_ms": 250.0, "usd": 0.35},
			`tollgate_run_usd_total{org="acme",`,
		},
		"text model": {
			"/v2/e1/runsync", `{"input":{}}`, `{"id":"a","status":"COMPLETED","output":[{"choices":[],"cost":0.01,"usage":{"input":3,"output":4}}]}`, "application/json",
			map[string]any{"gen_ai.usage.input_tokens": 3.0, "gen_ai.usage.output_tokens": 4.0, "usd": 0.01},
			`tollgate_tokens_total{kind="prompt",org="acme",`,
		},
		"chat": {
			"/v2/e1/openai/v1/chat/completions", hello, `{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6,"total_tokens":11}}`, "application/json",
			map[string]any{"gen_ai.usage.input_tokens": 5.0, "gen_ai.usage.output_tokens": 6.0},
			`tollgate_tokens_total{kind="completion",org="acme",`,
		},
		"stream": {
			"/v2/e1/openai/v1/chat/completions", asksToStream,
			strings.Repeat("data: {\"choices\":[]}\n\n", 1000) + "data: {\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":8}}\n\ndata: [DONE]\n\n", "text/event-stream",
			map[string]any{"gen_ai.usage.input_tokens": 7.0, "gen_ai.usage.output_tokens": 8.0},
			`tollgate_tokens_total{kind="completion",org="acme",`,
		},
		"nothing to tell": {"/v2/e1/run", `{"input":{}}`, `{"id":"a","status":"IN_QUEUE"}`, "application/json", map[string]any{"usd": nil, "job_queued_ms": nil}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, upstream(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tc.kind)
				_, _ = io.WriteString(w, tc.answer)
			}))
			if a := r.ask(t, "POST", tc.target, "key_research", tc.body); a.Status != 200 || a.Body != tc.answer {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
			r.close()
			events := r.logs.Exchanges(t)
			for member, want := range tc.log {
				if got := events[0][member]; got != want {
					t.Errorf("%s: %v, want %v", member, got, want)
				}
			}
			w := httptest.NewRecorder()
			r.providers.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			if !strings.Contains(w.Body.String(), tc.metric) {
				t.Errorf("no %s in the metrics", tc.metric)
			}
		})
	}
}
