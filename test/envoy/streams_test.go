package envoy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/tollgate-dev/tollgate/test/world"
)

// Two hundred chats stream through an Envoy at once. Each event is with all callers
// before the next is made, and what Envoy holds does not grow with what has passed.
func TestManyStreamsThroughEnvoy(t *testing.T) {
	program(t)
	const streams, events = 200, 10
	// An event is large enough for 200 streams of them to show in Envoy's memory.
	event := "data: " + strings.Repeat("x", 32<<10) + "\n"
	var steps []chan struct{}
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, step := range steps {
			select {
			case <-step:
			case <-r.Context().Done(): // the test has failed
				return
			}
			_, _ = io.WriteString(w, event+"\n")
			_ = http.NewResponseController(w).Flush()
		}
	}))
	t.Cleanup(model.Close)
	text := strings.Replace(serving(), "RUNS", model.URL, 1)
	text = strings.ReplaceAll(text, "limits: {minute: 6000, hour: 30000, day: 50000}", "exempt: true")
	eachTopology(t, text, func(t *testing.T, _ *fleet, w *way) {
		steps = nil
		for range events {
			steps = append(steps, make(chan struct{}))
		}
		conns := make([]net.Conn, streams)
		readers := make([]*bufio.Reader, streams)
		each := func(do func(i int) error) {
			t.Helper()
			var group errgroup.Group
			for i := range streams {
				group.Go(func() error { return do(i) })
			}
			if err := group.Wait(); err != nil {
				t.Fatal(err)
			}
		}
		for i := range streams {
			conns[i] = world.Dial(t, w.addr)
		}
		body := `{"model":"llm","stream":true,"messages":[{"role":"user","content":"a"}]}`
		each(func(i int) error {
			_, err := io.WriteString(conns[i], request("POST", "/v2/llm/openai/v1/chat/completions", "key_platform", body))
			return err
		})
		close(steps[0])
		each(func(i int) error {
			res, err := http.ReadResponse(bufio.NewReader(conns[i]), nil) //nolint:bodyclose // closed with the connection
			if err != nil || res.StatusCode != http.StatusOK {
				return errors.Join(fmt.Errorf("stream %d: %v", i, res), err)
			}
			readers[i] = bufio.NewReader(res.Body)
			return nil
		})
		held := 0
		for n := range events {
			if n > 0 {
				close(steps[n])
			}
			each(func(i int) error {
				got, err := readers[i].ReadString('\n')
				if err != nil || got != event {
					return fmt.Errorf("stream %d, event %d: %d bytes, %w", i, n, len(got), err)
				}
				_, err = readers[i].ReadString('\n')
				return err
			})
			if n == 0 {
				held = w.stat(t, "server.memory_allocated")
			}
		}
		// What has passed since is 58 MB.
		if grown := w.stat(t, "server.memory_allocated") - held; grown > 16<<20 {
			t.Errorf("Envoy holds %d bytes more than after the first event of each stream, want no more than 16 MiB", grown)
		}
	})
}
