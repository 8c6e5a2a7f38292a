package runs

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/test/world"
)

// scripts are the streams of an upstream, by the model that is asked for: each string is written
// and flushed at once.
type scripts struct {
	mu    sync.Mutex
	parts map[string]chan string // guarded by mu
}

func (s *scripts) add(model string) chan<- string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[model] = make(chan string)
	return s.parts[model]
}

func (s *scripts) serve(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Model string }
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		panic(err)
	}
	s.mu.Lock()
	parts := s.parts[asked.Model]
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	rc := http.NewResponseController(w)
	_ = rc.Flush()
	for part := range parts {
		_, _ = io.WriteString(w, part)
		_ = rc.Flush()
	}
}

// TestStreamsArriveWhole: of several streams at once, each arrives in order, whole and
// once, wherever the platform's writes are cut and however they interleave.
func TestStreamsArriveWhole(t *testing.T) {
	s := &scripts{parts: map[string]chan string{}}
	r := newRig(t, upstream(t, s.serve))
	rounds := 0
	rapid.Check(t, func(rt *rapid.T) {
		rounds++
		type stream struct {
			text  string
			parts []string
			to    chan<- string
			got   string
			err   error
		}
		streams := make([]*stream, rapid.IntRange(1, 4).Draw(rt, "streams"))
		var turns []int
		var readers sync.WaitGroup
		for i := range streams {
			st := new(stream)
			streams[i] = st
			events := rapid.SliceOfN(rapid.StringMatching(`(id: [0-9]{1,3}\n)?data: [a-zé😀]{0,40}\n`), 0, 12).Draw(rt, "events")
			st.text = strings.Join(events, "\n") + "\n"
			for rest := st.text; rest != ""; {
				n := rapid.IntRange(1, len(rest)).Draw(rt, "cut")
				st.parts, rest = append(st.parts, rest[:n]), rest[n:]
				turns = append(turns, i)
			}
			model := fmt.Sprintf("m%d-%d", rounds, i)
			st.to = s.add(model)
			conn := world.Dial(t, r.addr)
			if _, err := io.WriteString(conn, world.Request("POST", "/v2/llm/openai/v1/chat/completions", "key_research",
				fmt.Sprintf(`{"model":%q,"stream":true,"messages":[{"role":"user"}]}`, model))); err != nil {
				rt.Fatal(err)
			}
			readers.Go(func() {
				defer func() { _ = conn.Close() }()
				var res *http.Response
				if res, st.err = http.ReadResponse(bufio.NewReader(conn), nil); st.err != nil {
					return
				}
				defer func() { _ = res.Body.Close() }()
				var body []byte
				body, st.err = io.ReadAll(res.Body)
				st.got = string(body)
			})
		}
		for _, i := range rapid.Permutation(turns).Draw(rt, "turns") {
			st := streams[i]
			st.to <- st.parts[0]
			st.parts = st.parts[1:]
		}
		for _, st := range streams {
			close(st.to)
		}
		readers.Wait()
		for i, st := range streams {
			if st.err != nil || st.got != st.text {
				rt.Fatalf("stream %d: read %q, %v; want %q", i, st.got, st.err, st.text)
			}
		}
	})
}

// TestManyStreamsAreSmall: 400 streams at once take less than 60 MB, the emulator's side
// and the callers' included, and none of it stays.
func TestManyStreamsAreSmall(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector's memory is not the gateway's")
	}
	const streams, most = 400, 60 << 20
	next := make(chan struct{})
	event := "data: " + strings.Repeat("x", 1<<10) + "\n\n"
	r := newRig(t, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		rc := http.NewResponseController(w)
		for range 4 {
			_, _ = io.WriteString(w, event)
			_ = rc.Flush()
		}
		<-next
	}))
	r.ask(t, "GET", "/v2/e1/health", "key_research", "") // what is made once is there
	before := inUse()
	conns := make([]net.Conn, streams)
	raw := world.Request("POST", "/v2/llm/openai/v1/chat/completions", "key_research", asksToStream)
	for i := range conns {
		conns[i] = world.Dial(t, r.addr)
		if _, err := io.WriteString(conns[i], raw); err != nil {
			t.Fatal(err)
		}
	}
	for _, conn := range conns {
		for got := 0; got < 4*len(event); {
			var part [4 << 10]byte
			n, err := conn.Read(part[:])
			if got += n; err != nil {
				t.Fatalf("after %d bytes: %v", got, err)
			}
		}
	}
	if took := int64(inUse()) - int64(before); took > most {
		t.Errorf("%d streams take %d bytes, want at most %d", streams, took, most)
	} else {
		t.Logf("%d bytes for each stream", took/streams)
	}
	close(next)
	for _, conn := range conns {
		_ = conn.Close()
	}
	r.close()
	if left := int64(inUse()) - int64(before); left > most/4 {
		t.Errorf("%d bytes are left of %d streams", left, streams)
	}
}

// inUse is the memory that heap and stacks occupy after collections; it takes two to
// empty a pool.
func inUse() uint64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
