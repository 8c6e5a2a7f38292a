package runs

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestEchoingWorkers: answers have no platform key, whole ones, streams that have it in
// parts, and those of load-balanced endpoints, headers included.
func TestEchoingWorkers(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		w.Header().Set("X-Worker", "I have "+key)
		rc := http.NewResponseController(w)
		if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"id":"sync-1","status":"COMPLETED","output":%q}`, key)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, part := range []string{`data: {"x":"`, key[:3], key[3:], "\"}\n\n", "data: [DONE]\n\n"} {
			_, _ = w.Write([]byte(part))
			_ = rc.Flush()
		}
	}
	worker := httptest.NewServer(http.HandlerFunc(echo))
	t.Cleanup(worker.Close)
	r := newRig(t, upstream(t, echo), balancedAt(t, worker.URL))
	for name, tc := range map[string]struct{ target, body string }{
		"a job":         {"/v2/llm/runsync", `{"input":{}}`},
		"a chat":        {"/v2/llm/openai/v1/chat/completions", asksToStream},
		"load-balanced": {"/lb/e1/x", `{}`},
		"its stream":    {"/lb/e1/chat/completions", `{}`},
	} {
		a := r.ask(t, "POST", tc.target, "key_research", tc.body)
		if whole := fmt.Sprint(a.Header, a.Body); a.Status != 200 || strings.Contains(whole, canary) || !strings.Contains(a.Body, "[redacted]") {
			t.Errorf("%s: %d %v %q", name, a.Status, a.Header, a.Body)
		}
		if strings.Contains(tc.target, "/lb/") && !strings.HasPrefix(a.Header.Get("X-Worker"), "I have [redacted]") {
			t.Errorf("%s: X-Worker: %s", name, a.Header.Get("X-Worker"))
		}
	}
	if strings.Contains(r.logs.String(), canary) {
		t.Error("the key is in the log")
	}
}
