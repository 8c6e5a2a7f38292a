package runs

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/test/world"
)

// hijacked answers with bytes instead of a response, and closes.
func hijacked(answer string, read bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if read {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, answer)
		_ = conn.Close()
	}
}

// silent reads the request, writes the given text and then nothing more.
func silent(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if answer != "" {
			_, _ = io.WriteString(w, answer)
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	}
}

// endless writes as long as it can.
func endless(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	for {
		if _, err := io.WriteString(w, "data: "+strings.Repeat("x", 1<<16)+"\n\n"); err != nil {
			return
		}
	}
}

// The acts of a caller with a request and its answer.
type manners func(t *testing.T, conn net.Conn, request string)

func reads(t *testing.T, conn net.Conn, request string) {
	t.Helper()
	_, _ = io.WriteString(conn, request) // the gateway may answer, and close, before all of it is sent
	_, _ = io.Copy(io.Discard, conn)
	_ = conn.Close()
}

func leaves(t *testing.T, conn net.Conn, request string) {
	t.Helper()
	stopsReading(t, conn, request)
	_ = conn.Close()
}

func stopsReading(t *testing.T, conn net.Conn, request string) {
	t.Helper()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
}

func leavesHalfway(t *testing.T, conn net.Conn, request string) {
	t.Helper()
	leaves(t, conn, request[:len(request)/2])
}

// TestFaultsGiveBack: however the platform or the caller fails, the exchange ends in a
// definite state, and gives back the memory of its body and its goroutines.
func TestFaultsGiveBack(t *testing.T) {
	const size = 11 << 20 // more than half of the memory there is
	job := `{"input":{"x":"` + strings.Repeat("x", size) + `"}}`
	chat := `{"model":"llm","stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("x", size-1000) + `"}]}`
	for name, tc := range map[string]struct {
		platform http.HandlerFunc
		body     string
		caller   manners
		outcome  string
	}{
		"the platform stops in mid-stream":   {silent("data: 1\n\n"), chat, reads, "upstream"},
		"a stream breaks off":                {hijacked("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n", true), chat, reads, "upstream"},
		"a chunk is none":                    {hijacked("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", true), chat, reads, "upstream"},
		"a job breaks off":                   {hijacked("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", true), job, reads, "upstream"},
		"a long answer breaks off":           {hijacked("HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n{", true), job, reads, "upstream"},
		"the platform never answers":         {silent(""), job, reads, "upstream"},
		"the platform never answers a chat":  {silent(""), chat, reads, "upstream"},
		"no HTTP":                            {hijacked("what?\r\n\r\n", true), job, reads, "upstream"},
		"no JSON":                            {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, job, reads, "upstream"},
		"the platform closes early":          {hijacked("", true), job, reads, "upstream"},
		"the platform reads nothing":         {hijacked("", false), job, reads, "upstream"},
		"the platform refuses and reads not": {hijacked("HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", false), job, reads, ""},
		"the caller leaves in its body":      {silent(""), job, leavesHalfway, ""},
		"the caller does not wait":           {silent(""), job, leaves, "canceled"},
		"the caller leaves its stream":       {silent("data: 1\n\n"), chat, leaves, "canceled"},
		"the caller stops reading":           {endless, chat, stopsReading, "canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			var platform atomic.Pointer[http.HandlerFunc]
			platform.Store(&tc.platform)
			r := newRig(t, top("run: {memory: 20971521}\ntimeouts: {run: 300ms, write: 300ms}"),
				upstream(t, func(w http.ResponseWriter, r *http.Request) { (*platform.Load())(w, r) }))
			before := goleak.IgnoreCurrent()
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", r.addr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			target := "/v2/e1/runsync"
			if tc.body == chat {
				target = "/v2/llm/openai/v1/chat/completions"
			}
			tc.caller(t, conn, world.Request("POST", target, "key_research", tc.body, "Connection: close"))
			end := r.logs.Await(`"outcome":`)
			if !strings.Contains(end, `"outcome":"`+tc.outcome) {
				t.Errorf("%s, want outcome %q", end, tc.outcome)
			}
			// There is memory for one body of this size: it is there again.
			healthy := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(w, `{"id":"j1","status":"COMPLETED"}`)
			})
			platform.Store(&healthy)
			if a := r.ask(t, "POST", "/v2/e1/runsync", "key_research", job); a.Status != 200 {
				t.Errorf("afterwards: %d %s", a.Status, a.Body)
			}
			r.close()
			ignored := []goleak.Option{before}
			for _, f := range []string{
				"net/http.(*persistConn).readLoop", "net/http.(*persistConn).writeLoop", // idle
				"net/http.(*conn).serve", // of the platform; the gateway's have ended, or close would wait
				"github.com/tollgate-dev/tollgate/policies/decisionlog.(*Log).deliver", // of the test's log, which may start late and ends with the test
				"github.com/alicebob/miniredis/v2/server.(*Server).servePeer", "github.com/alicebob/miniredis/v2/server.(*Server).servePeer.func2",
			} {
				ignored = append(ignored, goleak.IgnoreAnyFunction(f))
			}
			goleak.VerifyNone(t, ignored...)
		})
	}
}
