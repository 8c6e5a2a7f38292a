package upstream

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// errStalled is the cause with which a body ends if no data arrives for too long.
var errStalled = errors.New("response stalled")

// body is a response body.
type body struct {
	io.ReadCloser
	ctx    context.Context //nolint:containedctx // of the exchange, which ends with the body
	cancel context.CancelCauseFunc
	watch  *stallDetector // nil if the body may be silent indefinitely
	// since is the start of the current read by the clock of watch. It is 0 between reads, because the time that the reader spends does not
	// count.
	since atomic.Int64
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.watch != nil {
		b.since.Store(b.watch.clock())
	}
	n, err := b.ReadCloser.Read(p)
	b.since.Store(0)
	if err != nil && !errors.Is(err, io.EOF) {
		err = classify(b.ctx, err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	if b.watch != nil {
		b.watch.remove(b)
	}
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}

// stallDetector ends bodies that receive no data for too long. A single timer checks all bodies periodically, because a timer for each read
// would cost more than the read itself.
type stallDetector struct {
	timeout time.Duration
	base    time.Time

	mu    sync.Mutex // guards the fields below
	open  map[*body]struct{}
	armed bool
}

func newStalls(patience time.Duration) *stallDetector {
	return &stallDetector{timeout: patience, base: time.Now(), open: make(map[*body]struct{})}
}

// clock returns a time that is never 0.
func (s *stallDetector) clock() int64 { return int64(time.Since(s.base)) + 1 }

// checksPerTimeout is the number of checks per timeout. A body may exceed the timeout by the time between two checks.
const checksPerTimeout = 4

// add watches a body until it is removed.
func (s *stallDetector) add(b *body) {
	if s.timeout <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[b] = struct{}{}
	if !s.armed {
		s.armed = true
		time.AfterFunc(s.timeout/checksPerTimeout, s.check)
	}
}

func (s *stallDetector) remove(b *body) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, b)
}

// check ends stalled bodies, and schedules the next check if any body is left.
func (s *stallDetector) check() {
	now := s.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for b := range s.open {
		if since := b.since.Load(); since != 0 && now-since >= int64(s.timeout) {
			b.cancel(errStalled)
		}
	}
	if s.armed = len(s.open) > 0; s.armed {
		time.AfterFunc(s.timeout/checksPerTimeout, s.check)
	}
}

// ErrTooLong is returned by [ReadAll] if a response body exceeds the limit.
var ErrTooLong = errors.New("response too long")

// ReadAll reads a body and closes it. If the body has more than limit bytes, ReadAll returns the first limit bytes and [ErrTooLong].
func ReadAll(body io.ReadCloser, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(body, limit+1))
	if cerr := body.Close(); err == nil {
		err = cerr
	}
	if err == nil && int64(len(b)) > limit {
		return b[:limit], ErrTooLong
	}
	return b, err
}
