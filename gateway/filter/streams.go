package filter

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/identity"
)

// ErrWithdrawn ends an event stream whose reader may not read it any more.
var ErrWithdrawn = errors.New("what allowed the stream was withdrawn")

// Stream is what an open event stream was allowed by.
type Stream struct {
	Caller *identity.Caller
	// Policies is the revision of the verdict, "" where a later one could not say
	// otherwise.
	Policies string
}

// Streams are the event streams now open. A stream outlasts the moment it was
// judged in, so what allowed it can be gone before it ends: its key revoked, its
// caller's roles changed, the organisation's policies replaced. Recheck cuts
// those; a reader who is still allowed connects again and is judged anew.
type Streams struct {
	// allowed reports whether a stream may go on.
	allowed func(Stream) bool

	mu   sync.Mutex
	open map[*openStream]struct{} // guarded by mu
}

type openStream struct {
	Stream
	cut context.CancelCauseFunc
}

// NewStreams returns Streams without a stream. allowed is called for each one
// when it opens and on every Recheck, and must see a change before Recheck is
// called for it.
func NewStreams(allowed func(Stream) bool) *Streams {
	return &Streams{allowed: allowed, open: make(map[*openStream]struct{})}
}

// Recheck cuts the streams that are not allowed any more.
func (s *Streams) Recheck() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for o := range s.open {
		if !s.allowed(o.Stream) {
			o.cut(ErrWithdrawn)
		}
	}
}

// add counts a stream that begins at now as open until it is released. Its context
// ends with ErrWithdrawn when it is cut, and when its caller's key ceases to be
// accepted.
func (s *Streams) add(ctx context.Context, stream Stream, now time.Time) (_ context.Context, release func()) {
	ctx, cut := context.WithCancelCause(ctx)
	if until := stream.Caller.Until; !until.IsZero() {
		lapse := time.AfterFunc(until.Sub(now), func() { cut(ErrWithdrawn) })
		context.AfterFunc(ctx, func() { lapse.Stop() })
	}
	o := &openStream{Stream: stream, cut: cut}
	s.mu.Lock()
	s.open[o] = struct{}{}
	s.mu.Unlock()
	// The change that forbids it may have come between its verdict and now;
	// one that comes after this finds it open.
	if !s.allowed(stream) {
		cut(ErrWithdrawn)
	}
	return ctx, func() {
		s.mu.Lock()
		delete(s.open, o)
		s.mu.Unlock()
		cut(nil)
	}
}

// cuttable is a stream's body. Its read error says whether it was cut.
type cuttable struct {
	io.ReadCloser
	ctx context.Context //nolint:containedctx // of the stream, which ends with it
}

// Read implements io.Reader.
func (c *cuttable) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && errors.Is(context.Cause(c.ctx), ErrWithdrawn) {
		err = ErrWithdrawn
	}
	return n, err
}
