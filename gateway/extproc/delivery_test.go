package extproc

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// creating is a stage that begins an intent.
type creating struct{}

func (creating) Name() string { return "creating" }

func (creating) Request(_ context.Context, ex *filter.Exchange) error {
	ex.Caller, ex.Out.Header, ex.Out.Buffered, ex.Idempotency = &identity.Caller{Org: "acme"}, http.Header{}, true, new(filter.IdempotencyState)
	return nil
}

// deliveries are intents that record whether their answers were delivered.
type deliveries struct {
	filter.Intents

	delivered []filter.Delivery
}

func (d *deliveries) End(_ context.Context, _ *filter.Exchange, _ *ledger.Settlement, one filter.Delivery) error {
	d.delivered = append(d.delivered, one)
	return nil
}

// createStream is the server's side of a stream with a create, which Envoy ends by a half-close, a reset or both. It does so when it
// has the answer, or before if it gives up.
type createStream struct {
	grpc.ServerStream

	ctx         context.Context //nolint:containedctx // of the stream
	reset       context.CancelFunc
	messages    []*extprocv3.ProcessingRequest
	closes      bool
	resets      bool
	stays       bool // until the server ends it
	sendError   error
	answered    chan struct{}
	atTheAnswer func()
}

func (s *createStream) Context() context.Context { return s.ctx }

func (s *createStream) Send(r *extprocv3.ProcessingResponse) error {
	if r.GetImmediateResponse() == nil {
		return nil
	}
	s.atTheAnswer()
	close(s.answered)
	return s.sendError
}

func (s *createStream) Recv() (*extprocv3.ProcessingRequest, error) {
	if len(s.messages) > 0 {
		m := s.messages[0]
		s.messages = s.messages[1:]
		return m, nil
	}
	<-s.answered
	if s.stays {
		<-s.ctx.Done()
		return nil, s.ctx.Err()
	}
	if s.resets {
		defer s.reset()
	}
	if s.closes {
		return nil, io.EOF
	}
	return nil, status.Error(codes.Canceled, "reset")
}

// How Envoy ends the stream says whether it has taken the answer; see decision 027.
func TestDelivery(t *testing.T) {
	for name, tc := range map[string]struct {
		closes, resets, stays bool
		sendError             error
		want                  filter.Delivery
		after                 time.Duration
	}{
		"reset alone":             {resets: true, want: filter.Delivered},
		"half-closed alone":       {closes: true, want: filter.Delivered, after: resetTime},
		"not ended":               {stays: true, want: filter.Delivered, after: endTime},
		"half-closed and reset":   {closes: true, resets: true, want: filter.Undelivered},
		"ended before the answer": {closes: true, resets: true, sendError: errors.New("stream ended"), want: filter.Undelivered},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				se, _ := newSession(t)
				d := new(deliveries)
				se.pipeline.Chain.Headers, se.pipeline.Chain.Body = []filter.Filter{creating{}}, nil
				se.pipeline.Ports = filter.Ports{Sender: sender{}, Intents: d}
				se.server.Pipeline = func() *filter.Pipeline { return se.pipeline }
				ctx, reset := context.WithCancel(t.Context())
				defer reset()
				began := time.Now()
				err := se.server.Process(&createStream{
					ctx: ctx, reset: reset, closes: tc.closes, resets: tc.resets, stays: tc.stays, sendError: tc.sendError, answered: make(chan struct{}),
					messages: []*extprocv3.ProcessingRequest{headers(false, "authorization", "Bearer k", "content-length", "2"), body("{}")},
					atTheAnswer: func() {
						if len(d.delivered) > 0 {
							t.Error("the delivery was reported before the answer was sent")
						}
					},
				})
				if !errors.Is(err, tc.sendError) {
					t.Fatalf("error = %v, want %v", err, tc.sendError)
				}
				if len(d.delivered) != 1 || d.delivered[0] != tc.want {
					t.Errorf("delivered = %v, want %v once", d.delivered, tc.want)
				}
				if took := time.Since(began); took != tc.after {
					t.Errorf("the stream stayed open for %s, want %s", took, tc.after)
				}
			})
		})
	}
}

// TestASilentConnectionIsClosed: a host that is gone answers no pings.
func TestASilentConnectionIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener, g := bufconn.Listen(1<<16), new(Server).NewGRPC()
		go func() { _ = g.Serve(listener) }()
		defer g.Stop()
		conn, err := listener.DialContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		const preface, noSettings = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
		if _, err := io.WriteString(conn, preface+noSettings); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, conn)
		if open := time.Since(began); open < pingAfter || open > pingAfter+2*pingTimeout {
			t.Errorf("the connection was open for %s, want %s", open, pingAfter+pingTimeout)
		}
	})
}
