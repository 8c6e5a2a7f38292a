package clients

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// The OpenAI client stops reading at "data: [DONE]", before the server ends the stream, and pays for its tokens. The
// server may not know stream_options.
func TestOpenAIPaysForItsTokens(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		knows bool
		spent string
	}{
		"a server that reports on request":     {true, "30"},
		"a server that refuses stream_options": {false, "30"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			python := installed(t, "openai-3.54.0/bin/python")
			s := httptest.NewServer(modelServer(tc.knows))
			t.Cleanup(s.Close)
			p := platform.RunT(t, platform.WithClock(standing()))
			cfg := world.Configuration(t, `
platform: {base_url: "`+p.URL+`", run_url: "`+s.URL+`"}
redis: {embedded: true}
limits: {timeout: 30s}
policies: {deadline: 30s}
orgs:
  - id: acme
    credential: {env: KEY}
    budget: {per_day: 5000}
    prices: {runs: {llm: {usd_per_million_tokens: 1000000, default_tokens: 500}}}
    keys: [{id: client, sha256: SHA256(`+key+`)}]
`, map[string]string{"KEY": platform.DefaultKey})
			g := world.Gateway(t, cfg, gateway.Deps{Redis: world.Redis(t, miniredis.RunT(t).Addr())})
			door := httptest.NewServer(g.Handler())
			t.Cleanup(door.Close)
			got := drive[struct{ Texts []string }](t, &stack{gateway: door.URL, platform: p}, python, "openai_stream.py")
			if diff := cmp.Diff([]string{"hello", "hello"}, got.Texts); diff != "" {
				t.Errorf("texts (-want +got):\n%s", diff)
			}
			door.Close() // waits for the gateway to read on
			if day := accrued(t, g); day != tc.spent {
				t.Errorf("%s USD have accrued, want %s", day, tc.spent)
			}
		})
	}
}

// modelServer streams a chat of 10 and 5 tokens, and ends the response after its end marker.
func modelServer(knows bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !knows && strings.Contains(string(body), "stream_options") {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"message":"Unrecognized request argument supplied: stream_options"}}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		const head = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"llm","choices":[`
		_, _ = io.WriteString(w, head+`{"index":0,"delta":{"role":"assistant","content":"hello"},"finish_reason":"stop"}]}`+"\n\n")
		_, _ = io.WriteString(w, head+`],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`+"\n\ndata: [DONE]\n\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(600 * time.Millisecond):
		}
	}
}

// accrued returns what the organisation has spent today, in USD.
func accrued(t *testing.T, g *gateway.Gateway) string {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/admin/spend?org=acme", http.NoBody)
	r.Host = "127.0.0.1"
	g.AdminHandler().ServeHTTP(w, r)
	var ledger money.Ledger
	if err := json.Unmarshal(w.Body.Bytes(), &ledger); err != nil || len(ledger.Scopes) == 0 {
		t.Fatalf("%d %s (%v)", w.Code, w.Body, err)
	}
	return ledger.Scopes[0].Day
}
