package hostile

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestTwoPatchesCannotAddUp: two changes that are each within bounds, judged on
// the same state, must not add up to one that is not.
func TestTwoPatchesCannotAddUp(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	both := sync.NewCond(&mu)
	reads := 0
	gpu := map[string]any{"count": 1.0, "pools": []any{"AMPERE_48"}, "excludedTypes": []any{"NVIDIA H200"}}
	workers := map[string]any{"min": 0.0, "max": 1.0, "idleTimeout": 10.0}
	endpoint := func() string {
		b, _ := json.Marshal(map[string]any{
			"id": "e1", "name": "e", "type": "QUEUE", "image": "i:1", "timeout": 1000, "flashboot": "OFF",
			"gpu": gpu, "workers": workers, "scaling": map[string]any{"type": "QUEUE_DELAY", "queueDelay": 4},
		})
		return string(b)
	}
	s := open(t, answering(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodGet {
			if reads++; reads == 2 {
				both.Broadcast()
			}
			for reads < 2 {
				both.Wait()
			}
		}
		_, _ = io.WriteString(w, endpoint())
	}))
	var wg sync.WaitGroup
	answers := make([]answer, 2)
	for i, body := range []string{`{"gpu":{"count":8}}`, `{"workers":{"max":20}}`} {
		wg.Go(func() { answers[i] = s.ask(t, request("PATCH", "/v2/serverless/e1", k1, body)) })
	}
	wg.Wait()
	for _, c := range s.recorder.take() {
		if c.Method != http.MethodPatch {
			continue
		}
		// Whichever comes last must leave a state that was judged as a whole.
		if !strings.Contains(c.Body, `"count":`) || !strings.Contains(c.Body, `"max":`) {
			t.Errorf("the platform got %s, which leaves the rest of the price to the other change", c.Body)
		}
	}
}
