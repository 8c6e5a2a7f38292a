package filter

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
)

// How far a call has come is a state, independent of its answer.
func TestSent(t *testing.T) {
	long := strings.Repeat("x", 2*maxShort)
	for name, tc := range map[string]struct {
		org    string
		whole  bool
		answer func(w http.ResponseWriter)
		sent   SendState
		body   string // of the answer, "" for a stream or none
		fails  bool
	}{
		"short":               {"acme", false, func(w http.ResponseWriter) { _, _ = io.WriteString(w, "{}") }, Answered, "{}", false},
		"long, streamed":      {"acme", false, func(w http.ResponseWriter) { _, _ = io.WriteString(w, long) }, Answered, "", false},
		"long, wanted whole":  {"acme", true, func(w http.ResponseWriter) { _, _ = io.WriteString(w, long) }, Answered, long, false},
		"an error":            {"acme", false, func(w http.ResponseWriter) { w.WriteHeader(http.StatusTeapot); _, _ = io.WriteString(w, "no") }, Answered, "no", false},
		"no answer":           {"acme", false, func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, SentUnanswered, "", true},
		"breaks off":          {"acme", true, breakOff, SentUnanswered, "", true},
		"breaks off, streams": {"acme", false, breakOff, Answered, "", false},
		"no credential":       {"globex", false, nil, NotSent, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { tc.answer(w) }))
			defer s.Close()
			client, err := upstream.New(upstream.Config{BaseURL: s.URL}, map[string]upstream.Credential{"acme": upstream.NewCredential("pk")})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			d := &Dispatcher{Upstream: client, Recorder: newRecorder(t), Deadline: time.Minute}
			ex := new(Pipeline).NewExchange(Inbound{Method: http.MethodPost, Path: "/v2/pods"})
			ex.Operation, ex.Caller = &schema.Operation{ID: "createPod", Mutates: true}, &identity.Caller{Org: tc.org}
			ex.Out = Outbound{Method: http.MethodPost, Path: "/v2/pods", Header: http.Header{}, Buffered: tc.whole}
			done, err := d.Send(t.Context(), ex)
			if (err != nil) != tc.fails || ex.Sent != tc.sent || (ex.Response == nil) != tc.fails {
				t.Fatalf("Send = %v, sent %d, answer %v; want sent %d, an error: %t", err, ex.Sent, ex.Response, tc.sent, tc.fails)
			}
			if err != nil {
				return
			}
			if got := string(ex.Response.Body); got != tc.body {
				t.Errorf("body of %d bytes, want %d", len(got), len(tc.body))
			}
			if ex.Response.Stream != nil {
				_ = ex.Response.Stream.Close()
			}
			done()
		})
	}
}

// pausable is an Intents whose gateway may have been declared dead.
type pausable struct {
	Intents

	dead atomic.Bool
}

func (p *pausable) MaySend(string) bool { return !p.dead.Load() }

// A gateway that is declared dead while a call waits for a connection does not send the call: the call of a repeat may have been sent.
func TestPausedBeforeTheConnection(t *testing.T) {
	arrived, finish := make(chan struct{}, 2), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-finish
	}))
	defer s.Close()
	client, err := upstream.New(upstream.Config{BaseURL: s.URL, Connections: 1}, map[string]upstream.Credential{"acme": upstream.NewCredential("pk")})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	d := &Dispatcher{Upstream: client, Recorder: newRecorder(t), Deadline: time.Minute}
	intents := new(pausable)
	send := func() (*Exchange, error) {
		ex := new(Pipeline).NewExchange(Inbound{Method: http.MethodPost, Path: "/v2/pods"})
		ex.Operation, ex.Caller = &schema.Operation{ID: "createPod", Mutates: true}, &identity.Caller{Org: "acme"}
		ex.Out = Outbound{Method: http.MethodPost, Path: "/v2/pods", Header: http.Header{}, Body: []byte("{}")}
		ex.Idempotency, ex.Ports.Intents = &IdempotencyState{Recorded: true}, intents
		done, err := d.Send(t.Context(), ex)
		if err == nil {
			done()
		}
		return ex, err
	}
	first := make(chan error)
	go func() {
		_, err := send()
		first <- err
	}()
	<-arrived
	second := make(chan error)
	var waiting *Exchange
	go func() {
		var err error
		waiting, err = send()
		second <- err
	}()
	intents.dead.Store(true) // while the second call waits for the only connection
	close(finish)
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	if err := <-second; !errors.Is(err, errPaused) || waiting.Sent != NotSent || len(arrived) > 0 {
		t.Errorf("sent %d, %d more calls arrived, %v; want %v", waiting.Sent, len(arrived), err, errPaused)
	}
}

// breakOff sends less than it announced.
func breakOff(w http.ResponseWriter) {
	w.Header().Set("Content-Length", strconv.Itoa(4*maxShort))
	_, _ = io.WriteString(w, strings.Repeat("x", maxShort))
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}
