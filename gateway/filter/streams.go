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

// ErrStreamEnded is returned when a stream that the gateway has ended is read or written.
var ErrStreamEnded = errors.New("the gateway ended the stream")

// Reasons for ending a stream.
var (
	errWithdrawn = fmt.Errorf("%w: permission withdrawn", ErrStreamEnded)
	errStopping  = fmt.Errorf("%w: the gateway is stopping", ErrStreamEnded)
	errIdle      = fmt.Errorf("%w: idle timeout", ErrStreamEnded)
)

// Stream identifies the permission under which a stream is open.
type Stream struct {
	Caller *identity.Caller
	// Policies is the revision of the policies that admitted the stream, "" if later policies do not matter.
	Policies string
}

// Streams tracks open event streams and WebSockets. A stream may outlive its permission: its key may be revoked, the caller's roles may
// change, or the policies may be replaced. Recheck ends such streams. A client whose permission remains can connect again and is then
// checked again.
type Streams struct {
	// allowed reports whether a stream may continue and for how long, 0 for no limit.
	allowed func(Stream) (left time.Duration, ok bool)

	mu   sync.Mutex // guards the fields below
	open map[*openStream]struct{}
	none chan struct{} // closed when no stream is open; nil if nobody waits

	over    chan struct{} // closed when the drain time has passed
	endOver sync.Once
}

type openStream struct {
	Stream
	cut   context.CancelCauseFunc
	lapse *time.Timer // ends the stream when its permission expires; nil if it does not
}

// NewStreams returns an empty Streams. allowed is called for each stream when it is opened and on every Recheck. When a change causes a
// call of Recheck, allowed must already take the change into account.
func NewStreams(allowed func(Stream) (left time.Duration, ok bool)) *Streams {
	return &Streams{allowed: allowed, open: make(map[*openStream]struct{}), over: make(chan struct{})}
}

// Recheck ends streams that are no longer allowed and updates the time limits of the others.
func (s *Streams) Recheck() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for o := range s.open {
		s.judge(o)
	}
}

// judge ends a stream now or schedules its end. s.mu must be held.
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

// add registers an open stream until release is called. Its context is canceled with ErrStreamEnded when the stream is ended or its
// permission expires.
func (s *Streams) add(ctx context.Context, stream Stream) (_ context.Context, release func()) {
	ctx, cut := context.WithCancelCause(ctx)
	o := &openStream{Stream: stream, cut: cut}
	s.mu.Lock()
	s.open[o] = struct{}{}
	// A change may have revoked the permission since it was checked. Later changes will find the stream registered.
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

// End waits until no stream is open. When ctx ends, End ends the remaining streams. After that, the gateway stops reading a response as
// soon as its caller disconnects, instead of continuing for up to LingerTimeout.
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

// endTimeout is the time that streams have to end.
const endTimeout = time.Second

// streamErr returns the reason why the gateway ended the stream, or err if it did not.
func streamErr(ctx context.Context, err error) error {
	if err != nil && !errors.Is(err, io.EOF) {
		if cause := context.Cause(ctx); errors.Is(cause, ErrStreamEnded) {
			return cause
		}
	}
	return err
}

// endableBody is the body of a stream. Its read error is ErrStreamEnded if the gateway ended the stream.
type endableBody struct {
	io.ReadCloser
	ctx context.Context //nolint:containedctx // of the stream, which ends with it
}

// Read implements io.Reader.
func (c *endableBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	return n, streamErr(c.ctx, err)
}
