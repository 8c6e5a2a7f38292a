package upstream

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// errStalled ends a body of which nothing comes any more.
var errStalled = errors.New("the answer stalled")

// body is the body of an answer.
type body struct {
	io.ReadCloser
	ctx    context.Context //nolint:containedctx // of the exchange, which ends with the body
	cancel context.CancelCauseFunc
	watch  *stallDetector // nil when it may be silent for as long as it likes
	// since is when the read under way began, by the clock of watch; 0 when none
	// is: the time its reader takes does not count.
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

// stallDetector ends bodies of which nothing comes for too long. One timer looks at all
// of them now and then: one for each read would cost more than the read.
type stallDetector struct {
	timeout time.Duration
	base    time.Time

	mu    sync.Mutex // guards what follows
	open  map[*body]struct{}
	armed bool
}

func newStalls(patience time.Duration) *stallDetector {
	return &stallDetector{timeout: patience, base: time.Now(), open: make(map[*body]struct{})}
}

// clock is the time since before s was made, never 0.
func (s *stallDetector) clock() int64 { return int64(time.Since(s.base)) + 1 }

// checksPerTimeout is how often bodies are looked at in the time they may stall, so that they
// end at most that part of it late.
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

// check ends the bodies that have stalled, and looks again while there are any.
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

// ErrTooLong is returned for the body of an answer that is longer than its reader takes.
var ErrTooLong = errors.New("answer too long")

// ReadAll reads and closes the body of an answer, at most limit bytes of it. Of a longer one it returns the beginning and ErrLong.
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
