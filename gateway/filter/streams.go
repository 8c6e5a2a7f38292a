package filter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/identity"
)

// ErrStreamEnded is why a stream ends that neither side has ended.
var ErrStreamEnded = errors.New("the gateway ended the stream")

// The reasons.
var (
	errWithdrawn = fmt.Errorf("%w: what allowed it was withdrawn", ErrStreamEnded)
	errStopping  = fmt.Errorf("%w: the gateway stops", ErrStreamEnded)
	errIdle      = fmt.Errorf("%w: nothing passed for too long", ErrStreamEnded)
)

// Stream is the permission of an open event stream.
type Stream struct {
	Caller *identity.Caller
	// Policies is the revision of the verdict, "" where a later one could not say
	// otherwise.
	Policies string
}

// Streams are the event streams now open. A stream outlasts the moment it was
// judged in, so its permission can be gone before it ends: its key revoked, its
// caller's roles changed, the organisation's policies replaced. Recheck cuts
// those; a reader that is still allowed connects again and is judged anew.
type Streams struct {
	// allowed reports whether a stream may go on and for how long, 0 without an end.
	allowed func(Stream) (left time.Duration, ok bool)

	mu   sync.Mutex // guards the fields below
	open map[*openStream]struct{}
	none chan struct{} // closed when none is open; nil when there is no wait

	over    chan struct{} // closed when the time to drain has passed
	endOver sync.Once
}

type openStream struct {
	Stream
	cut   context.CancelCauseFunc
	lapse *time.Timer // cuts it when its time ends; nil without an end
}

// NewStreams returns Streams without a stream. allowed is called for each one
// when it opens and on every Recheck, and must see a change before Recheck is
// called for it.
func NewStreams(allowed func(Stream) (left time.Duration, ok bool)) *Streams {
	return &Streams{allowed: allowed, open: make(map[*openStream]struct{}), over: make(chan struct{})}
}

// Recheck cuts the streams that are not allowed any more, and those that are when
// the time ends that they now have.
func (s *Streams) Recheck() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for o := range s.open {
		s.judge(o)
	}
}

// judge cuts a stream now or when its time ends. s.mu is held.
func (s *Streams) judge(o *openStream) {
	o.stop()
	left, ok := s.allowed(o.Stream)
	switch {
	case !ok:
		o.cut(errWithdrawn)
	case left > 0:
		o.lapse = time.AfterFunc(left, func() { o.cut(errWithdrawn) })
	}
}

func (o *openStream) stop() {
	if o.lapse != nil {
		o.lapse.Stop()
	}
}

// add counts a stream as open until it is released. Its context ends with ErrCut
// when it is cut, and when its caller's key ceases to be accepted.
func (s *Streams) add(ctx context.Context, stream Stream) (_ context.Context, release func()) {
	ctx, cut := context.WithCancelCause(ctx)
	o := &openStream{Stream: stream, cut: cut}
	s.mu.Lock()
	s.open[o] = struct{}{}
	// The change that forbids it may have come between its verdict and now;
	// one that comes after this finds it open.
	s.judge(o)
	s.mu.Unlock()
	return ctx, func() {
		s.mu.Lock()
		o.stop()
		if delete(s.open, o); len(s.open) == 0 && s.none != nil {
			close(s.none)
			s.none = nil
		}
		s.mu.Unlock()
		cut(nil)
	}
}

// IntentUpdatecome waits until no stream is open. Streams that are open when ctx ends are cut, and from then on
// no response is read after its caller has left.
func (s *Streams) End(ctx context.Context) {
	defer context.AfterFunc(ctx, func() { s.endOver.Do(func() { close(s.over) }) })()
	s.mu.Lock()
	if s.none == nil {
		s.none = make(chan struct{})
	}
	none := s.none
	if len(s.open) == 0 {
		close(none)
		s.none = nil
	}
	s.mu.Unlock()
	select {
	case <-none:
		return
	case <-ctx.Done():
	}
	s.mu.Lock()
	for o := range s.open {
		o.cut(errStopping)
	}
	s.mu.Unlock()
	select {
	case <-none:
	case <-time.After(endTimeout):
	}
}

// endTimeout is how long a stream that is cut may take to end.
const endTimeout = time.Second

// streamErr is the error of reading a stream, or why that was cut.
func streamErr(ctx context.Context, err error) error {
	if err != nil && !errors.Is(err, io.EOF) {
		if cause := context.Cause(ctx); errors.Is(cause, ErrStreamEnded) {
			return cause
		}
	}
	return err
}

// endableBody is a stream's body. Its read error says whether it was cut.
type endableBody struct {
	io.ReadCloser
	ctx context.Context //nolint:containedctx // of the stream, which ends with it
}

// Read implements io.Reader.
func (c *endableBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	return n, streamErr(c.ctx, err)
}
