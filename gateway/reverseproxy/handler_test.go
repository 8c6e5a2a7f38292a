package reverseproxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	meternoop "go.opentelemetry.io/otel/metric/noop"
	tracernoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// stage is the only stage of a chain. It answers the exchange.
type stage struct {
	seen   *filter.Exchange
	answer *filter.Response
}

func (*stage) Name() string { return "head" }

func (s *stage) Request(_ context.Context, ex *filter.Exchange) error {
	s.seen = ex
	if s.answer.Header == nil {
		s.answer.Header = make(http.Header)
	}
	ex.Reply(s.answer)
	return nil
}

// newHandler returns a door to a chain that answers with a.
func newHandler(t *testing.T, a *filter.Response) (*Handler, *stage) {
	t.Helper()
	recorder := telemetry.NewRecorder(slog.New(slog.DiscardHandler), tracernoop.NewTracerProvider(), meternoop.NewMeterProvider(), time.Now)
	s := &stage{answer: a}
	p := &filter.Pipeline{Chain: &filter.Chain{Headers: []filter.Filter{s}}}
	return &Handler{Pipeline: func() *filter.Pipeline { return p }, Recorder: recorder}, s
}

// serve answers one request with a.
func serve(t *testing.T, r *http.Request, a *filter.Response) (*httptest.ResponseRecorder, *filter.Exchange) {
	t.Helper()
	h, s := newHandler(t, a)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w, s.seen
}

func TestTheRequestArrivesAsItWasSent(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodPost, "/v2/pods/a%2Fb?x=%20y", strings.NewReader("{}"))
	r.Header.Set("Authorization", "Bearer k")
	_, ex := serve(t, r, &filter.Response{Status: http.StatusNoContent})
	in := ex.In
	if in.Door != filter.DoorHTTP || in.Method != http.MethodPost || in.Path != "/v2/pods/a%2Fb" || in.Query != "x=%20y" || in.Length != 2 ||
		in.Host != "example.com" || in.Header.Get("Authorization") != "Bearer k" || in.Peer != "192.0.2.1" {
		t.Errorf("the exchange has %+v", in)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	stream := func() io.ReadCloser { return io.NopCloser(strings.NewReader("data: 1\n\n")) }
	for name, tt := range map[string]struct {
		method  string
		answer  filter.Response
		body    string
		length  string
		flushed bool
	}{
		"a body":                   {http.MethodGet, filter.Response{Status: 200, Body: []byte("{}")}, "{}", "2", false},
		"none":                     {http.MethodGet, filter.Response{Status: 204, Body: []byte("{}")}, "", "", false},
		"a stream":                 {http.MethodGet, filter.Response{Status: 200, Stream: stream()}, "data: 1\n\n", "", true},
		"a stream of known length": {http.MethodGet, filter.Response{Status: 200, Stream: stream(), Header: http.Header{"Content-Length": {"9"}}}, "data: 1\n\n", "9", false},
		"a stream, for HEAD":       {http.MethodHead, filter.Response{Status: 200, Stream: stream()}, "", "", false},
	} {
		if tt.answer.Header == nil {
			tt.answer.Header = make(http.Header)
		}
		tt.answer.Header["Ratelimit"] = []string{"default;r=1"}
		w, ex := serve(t, httptest.NewRequest(tt.method, "/v2/pods", http.NoBody), &tt.answer)
		if w.Code != tt.answer.Status || w.Body.String() != tt.body || w.Header().Get("Content-Length") != tt.length || w.Flushed != tt.flushed {
			t.Errorf("%s: %d %q, length %q, flushed %t", name, w.Code, w.Body, w.Header().Get("Content-Length"), w.Flushed)
		}
		if got := w.Header()["RateLimit"]; len(got) != 1 { //nolint:staticcheck // the spelling of the draft
			t.Errorf("%s: header %v, want the draft's spelling of RateLimit", name, w.Header())
		}
		if ex.Event.Outcome != telemetry.OutcomeOK {
			t.Errorf("%s: outcome %s", name, ex.Event.Outcome)
		}
	}
}

// A stream that breaks off ends the connection without its regular end, and the event has the cause.
func TestABrokenStreamIsNotEndedInOrder(t *testing.T) {
	t.Parallel()
	broken := errors.New("the platform has gone")
	for cause, want := range map[error]telemetry.Outcome{broken: telemetry.OutcomeUpstream, filter.ErrStreamEnded: telemetry.OutcomeTerminated} {
		h, s := newHandler(t, &filter.Response{Status: 200, Stream: io.NopCloser(io.MultiReader(strings.NewReader("part"), iotest.ErrReader(cause)))})
		w := httptest.NewRecorder()
		func() {
			defer func() {
				if p := recover(); p != http.ErrAbortHandler { //nolint:errorlint // it is this one
					t.Errorf("%v: ended with %v, want http.ErrAbortHandler", cause, p)
				}
			}()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v2/pods", http.NoBody))
		}()
		if e := s.seen.Event; e.Outcome != want || !errors.Is(e.Cause, cause) || e.BytesOut != 4 || w.Body.String() != "part" {
			t.Errorf("%v: outcome %s by %v, %d bytes, body %q", cause, e.Outcome, e.Cause, e.BytesOut, w.Body)
		}
	}
}
