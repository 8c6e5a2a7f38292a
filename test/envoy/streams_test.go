package envoy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/tollgate-dev/tollgate/test/world"
)

// What two hundred streams carry. An event is large enough for them all to show in the
// memory of who holds them.
const streams, events = 200, 10

// source is a server whose event streams advance one step at a time, all at once.
type source struct {
	*httptest.Server

	event string
	steps []chan struct{}
}

func newSource(t *testing.T) *source {
	t.Helper()
	s := &source{event: "data: " + strings.Repeat("x", 32<<10) + "\n"}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/logs") && !strings.HasSuffix(r.URL.Path, "/chat/completions") {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, step := range s.steps {
			select {
			case <-step:
			case <-r.Context().Done(): // the test has failed
				return
			}
			_, _ = io.WriteString(w, s.event+"\n")
			_ = http.NewResponseController(w).Flush()
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// Two hundred chats, and two hundred log streams, pass an Envoy at once. Each event is with
// all callers before the next is made, and the memory of Envoy and the gateway does not
// grow with the bytes that have passed.
func TestManyStreamsThroughEnvoy(t *testing.T) {
	program(t)
	for name, tc := range map[string]struct{ at, request string }{
		"chats": {"RUNS", request("POST", "/v2/llm/openai/v1/chat/completions", "key_platform", `{"model":"llm","stream":true,"messages":[{"role":"user","content":"a"}]}`)},
		"logs":  {"PLATFORM", request("GET", "/v2/pods/p1/logs", "key_platform", "")},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSource(t)
			text := strings.Replace(serving(), tc.at, s.URL, 1)
			text = strings.ReplaceAll(text, "limits: {minute: 6000, hour: 30000, day: 50000}", "exempt: true")
			eachTopology(t, text, func(t *testing.T, _ *fleet, w *way) { w.stream(t, s, tc.request) })
		})
	}
}

// stream reads every event of all streams, and checks the held memory meanwhile.
func (w *way) stream(t *testing.T, s *source, raw string) {
	t.Helper()
	s.steps = nil
	for range events {
		s.steps = append(s.steps, make(chan struct{}))
	}
	readers := opened(t, w.addr, raw, func() { close(s.steps[0]) })
	var envoy, gateway int
	for n := range events {
		if n > 0 {
			close(s.steps[n])
		}
		each(t, func(i int) error {
			got, err := readers[i].ReadString('\n')
			if err != nil || got != s.event {
				return fmt.Errorf("stream %d, event %d: %d bytes, %w", i, n, len(got), err)
			}
			_, err = readers[i].ReadString('\n')
			return err
		})
		if n == 0 {
			envoy, gateway = w.stat(t, "server.memory_allocated"), heap()
		}
	}
	// 58 MB have passed since.
	const most = 16 << 20
	if grown := w.stat(t, "server.memory_allocated") - envoy; grown > most {
		t.Errorf("Envoy holds %d bytes more than after the first event of each stream, want no more than %d", grown, most)
	}
	if grown := heap() - gateway; grown > most {
		t.Errorf("the gateway and this test hold %d bytes more than after the first event of each stream, want no more than %d", grown, most)
	}
}

// opened sends a request on each of the connections, has the first event made, and returns
// the bodies of the answers.
func opened(t *testing.T, addr, raw string, first func()) []*bufio.Reader {
	t.Helper()
	conns, readers := make([]net.Conn, streams), make([]*bufio.Reader, streams)
	for i := range streams {
		conns[i] = world.Dial(t, addr)
	}
	each(t, func(i int) error {
		_, err := io.WriteString(conns[i], raw)
		return err
	})
	first()
	each(t, func(i int) error {
		res, err := http.ReadResponse(bufio.NewReader(conns[i]), nil) //nolint:bodyclose // closed with the connection
		if err != nil || res.StatusCode != http.StatusOK {
			return errors.Join(fmt.Errorf("stream %d: %v", i, res), err)
		}
		readers[i] = bufio.NewReader(res.Body)
		return nil
	})
	return readers
}

// each does something with all streams at once.
func each(t *testing.T, do func(i int) error) {
	t.Helper()
	var group errgroup.Group
	for i := range streams {
		group.Go(func() error { return do(i) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// heap is what this process holds.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
