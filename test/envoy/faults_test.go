package envoy

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/world"
)

// closed checks that a request met a gateway which was not there: refused with
// a 5xx, and nothing at the platform.
func (w *way) closed(t *testing.T, send func() answer) answer {
	t.Helper()
	var a answer
	calls := w.sent(func() { a = send() })
	if a.Status < 500 || strings.Contains(a.Body, "NVIDIA") {
		t.Errorf("answer = %d %s, want a 5xx that tells nothing", a.Status, a.Body)
	}
	if len(calls) != 0 {
		t.Errorf("%d requests reached the platform: %+v", len(calls), calls)
	}
	return a
}

// The processor breaks off in every place where it can: nothing is forwarded
// unjudged.
func TestTheProcessorBreaksOff(t *testing.T) {
	for _, raw := range []struct{ name, request string }{
		{"GET", request("GET", "/v2/catalog/gpus/NVIDIA%20L4", "key_research", "")},
		{"POST", request("POST", "/v2/pods", "key_research", pod4090)},
		{"POST, chunked", request("POST", "/v2/pods", "key_research", world.Chunked(pod4090), "Transfer-Encoding: chunked")},
	} {
		t.Run("before any verdict/"+raw.name, func(t *testing.T) {
			w := open(t)
			w.gate.hold(true)
			w.closed(t, func() answer {
				conn := world.Dial(t, w.addr)
				w.gate.after(t, func() { _, _ = io.WriteString(conn, raw.request) })
				w.gate.cut()
				return world.Read(t, bufio.NewReader(conn), raw.request)
			})
			w.gate.hold(false)
			if a := w.send(t, raw.request); a.Status >= 300 {
				t.Errorf("with the processor back: %d %s", a.Status, a.Body)
			}
		})
	}
	for name, end := range map[string]func(*way){
		"cut between headers and body": func(w *way) { w.gate.cut() },
		"stopped in mid-request":       func(w *way) { w.door.Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			raw := request("POST", "/v2/pods", "key_research", pod4090)
			w.closed(t, func() answer {
				conn := world.Dial(t, w.addr)
				half := len(raw) - 10
				w.gate.after(t, func() { _, _ = io.WriteString(conn, raw[:half]) })
				end(w)
				_, _ = io.WriteString(conn, raw[half:])
				return world.Read(t, bufio.NewReader(conn), raw)
			})
		})
	}
	t.Run("stopped before the request", func(t *testing.T) {
		w := open(t)
		w.door.Stop()
		w.closed(t, func() answer { return w.send(t, request("GET", "/v2/catalog/gpus/NVIDIA%20L4", "key_research", "")) })
	})
	t.Run("never answers", func(t *testing.T) {
		w := open(t, shaped(func(b *bootstrap) { b.filter()["message_timeout"] = "0.2s" }))
		w.gate.hold(true)
		a := w.closed(t, func() answer { return w.send(t, request("GET", "/v2/catalog/gpus/NVIDIA%20L4", "key_research", "")) })
		if a.Status != http.StatusGatewayTimeout {
			t.Errorf("status = %d, want 504", a.Status)
		}
	})
	// The platform's act cannot be undone, but its answer must not pass unfiltered.
	t.Run("before the answer was seen", func(t *testing.T) {
		asked, reply := make(chan struct{}), make(chan struct{})
		upstream := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			close(asked)
			<-reply
			rw.Header().Set("X-Echo", r.Header.Get("Authorization"))
			_, _ = io.WriteString(rw, `{"pods":[]}`)
		}))
		t.Cleanup(upstream.Close)
		w := open(t, to(upstream.URL))
		raw := request("GET", "/v2/pods/p1", "key_research", "")
		conn := world.Dial(t, w.addr)
		_, _ = io.WriteString(conn, raw)
		<-asked
		w.gate.hold(true)
		w.gate.after(t, func() { close(reply) })
		w.gate.cut()
		a := world.Read(t, bufio.NewReader(conn), raw)
		if a.Status < 500 || strings.Contains(a.Body, "pods") || a.Header.Get("X-Echo") != "" {
			t.Errorf("answer = %d %v %s", a.Status, a.Header, a.Body)
		}
	})
}

// A caller that sends half a body and waits gets an error from Envoy or from the gateway. If Envoy serves the run interface, its
// request_timeout is longer than timeouts.body.
func TestASlowCaller(t *testing.T) {
	for name, opts := range map[string][]option{
		"Envoy": {shaped(func(b *bootstrap) { b.manager()["request_timeout"] = "2s" })},
		"gateway": {
			shaped(func(b *bootstrap) { b.manager()["request_timeout"] = "450s" }),
			func(w *way) {
				w.configuration = strings.Replace(w.configuration, "timeouts: {", "timeouts: {body: 2s, ", 1)
			},
		},
	} {
		t.Run(name, func(t *testing.T) { sendSlowly(t, open(t, opts...)) })
	}
}

func sendSlowly(t *testing.T, w *way) {
	t.Helper()
	// The first verdict takes longer, and its time counts.
	w.send(t, request("GET", "/v2/pods", "key_research", ""))
	for name, raw := range map[string]string{
		"fixed":   request("POST", "/v2/pods", "key_research", pod4090),
		"chunked": request("POST", "/v2/pods", "key_research", world.Chunked(pod4090), "Transfer-Encoding: chunked"),
	} {
		t.Run(name, func(t *testing.T) {
			var a answer
			calls := w.sent(func() {
				conn := world.Dial(t, w.addr)
				begin := time.Now()
				_, _ = io.WriteString(conn, raw[:len(raw)-10])
				a = world.Read(t, bufio.NewReader(conn), raw)
				if took := time.Since(begin); took > 20*time.Second {
					t.Errorf("it took %s", took)
				}
			})
			if a.Status != 400 || len(calls) != 0 {
				t.Errorf("answer = %d %s, %d calls", a.Status, a.Body, len(calls))
			}
		})
	}
}
