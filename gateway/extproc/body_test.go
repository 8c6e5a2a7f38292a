package extproc

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"

	"github.com/tollgate-dev/tollgate/gateway/filter"
)

// No caller without a key keeps a session waiting for its body, whether its length is known or not.
func TestTheKeyComesBeforeTheBody(t *testing.T) {
	for name, length := range map[string][]string{"length known": {"content-length", "2"}, "length unknown": nil} {
		se, j := newSession(t)
		res, err := se.handle(t.Context(), headers(false, length...))
		if err != nil || res.GetImmediateResponse() == nil || j.heads != 1 {
			t.Errorf("%s: reply %v, %v after %d heads, want a refusal after the head", name, res, err, j.heads)
		}
	}
}

// slowStream is the server's side of a stream whose request body arrives after a delay.
type slowStream struct {
	grpc.ServerStream

	ctx     context.Context //nolint:containedctx // of the stream
	delay   time.Duration
	open    bool // the headers were received
	replies []*extprocv3.ProcessingResponse
}

func (s *slowStream) Context() context.Context { return s.ctx }

func (s *slowStream) Send(r *extprocv3.ProcessingResponse) error {
	s.replies = append(s.replies, r)
	return nil
}

func (s *slowStream) Recv() (*extprocv3.ProcessingRequest, error) {
	if !s.open {
		s.open = true
		return headers(false, "authorization", "Bearer k"), nil
	}
	select {
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	case <-time.After(s.delay):
		s.delay = time.Hour // for the message after the body
		return body("{}"), nil
	}
}

// A session waits for the body as long as it may, and then refuses it as the HTTP server does.
func TestSlowBodies(t *testing.T) {
	for name, tc := range map[string]struct {
		delay, limit, after time.Duration
		status              int
		contents            int
	}{
		"in time":   {14 * time.Second, 15 * time.Second, 14 * time.Second, 500, 1}, // the refusal of contentStage
		"too slow":  {time.Minute, 15 * time.Second, 15 * time.Second, 400, 0},
		"unlimited": {time.Minute, 0, time.Minute, 500, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				se, j := newSession(t)
				se.pipeline.Chain.Body = append([]filter.Filter{filter.ReadBody{}}, se.pipeline.Chain.Body...)
				se.server.Pipeline, se.server.BodyTimeout = func() *filter.Pipeline { return se.pipeline }, tc.limit
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s, begin := &slowStream{ctx: ctx, delay: tc.delay}, time.Now()
				err := se.server.Process(s)
				if err != nil || len(s.replies) != 2 {
					t.Fatalf("Process = %v after %d replies, want 2", err, len(s.replies))
				}
				code := int(s.replies[1].GetImmediateResponse().GetStatus().GetCode())
				if took := time.Since(begin); took != tc.after || code != tc.status || j.contents != tc.contents {
					t.Errorf("status %d after %s, %d contents judged; want %d after %s, %d", code, took, j.contents, tc.status, tc.after, tc.contents)
				}
			})
		})
	}
}

func trailers() *extprocv3.ProcessingRequest {
	return &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestTrailers{RequestTrailers: &extprocv3.HttpTrailers{
		Trailers: &corev3.HeaderMap{Headers: []*corev3.HeaderValue{{Key: "x-trailer", RawValue: []byte("1")}}},
	}}}
}

// Trailers after a body are removed. Envoy sends trailers without a body in its place, and the request goes no further.
func TestTrailers(t *testing.T) {
	res, err := (&session{phase: awaitResponse}).handle(t.Context(), trailers())
	if err != nil {
		t.Fatal(err)
	}
	if got := res.GetRequestTrailers().GetHeaderMutation().GetRemoveHeaders(); !slices.Equal(got, []string{"x-trailer"}) {
		t.Errorf("removed %q, want x-trailer", got)
	}
	for _, length := range []string{"2", ""} {
		se, j := newSession(t)
		if _, err := se.handle(t.Context(), headers(false, "authorization", "Bearer k", "content-length", length)); err != nil {
			t.Fatal(err)
		}
		res, err := se.handle(t.Context(), trailers())
		if code := res.GetImmediateResponse().GetStatus().GetCode(); err != nil || code != 400 || j.heads != 1 || j.contents != 0 {
			t.Errorf("length %q: reply %v, %v after %d heads and %d contents, want 400 after the head", length, res, err, j.heads, j.contents)
		}
	}
}
