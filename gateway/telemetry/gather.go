package telemetry

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"
)

// gathering is how long a line may wait for others, and mostGathered how many bytes of
// lines may.
const (
	gathering    = 50 * time.Millisecond
	mostGathered = 64 << 10
)

// Gathered writes the lines of a log. Lines about requests that only read and were
// answered wait for others, 50 ms at most; any other is written at once, behind those that
// wait. It is safe for concurrent use.
type Gathered struct {
	w io.Writer

	mu      sync.Mutex // guards what follows
	waiting []byte
	timed   bool // what waits is written in a while
}

// Gather returns a Gathered that writes to w. Call Flush at the end.
func Gather(w io.Writer) *Gathered { return &Gathered{w: w} }

// Handler returns a handler for h, which writes a line into g with each record.
func (g *Gathered) Handler(h slog.Handler) slog.Handler { return gatherer{h, g} }

// Write implements io.Writer. The line waits for wait or Flush.
func (g *Gathered) Write(line []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, line...)
	return len(line), nil
}

// Flush writes what waits.
func (g *Gathered) Flush() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		return nil
	}
	_, err := g.w.Write(g.waiting)
	g.waiting = g.waiting[:0]
	return err
}

// wait has what waits written in a while, or now if it is much.
func (g *Gathered) wait() error {
	g.mu.Lock()
	full, begin := len(g.waiting) >= mostGathered, !g.timed
	g.timed = true
	g.mu.Unlock()
	if begin {
		time.AfterFunc(gathering, g.late)
	}
	if full {
		return g.Flush()
	}
	return nil
}

// late writes what has waited long enough.
func (g *Gathered) late() {
	g.mu.Lock()
	g.timed = false
	g.mu.Unlock()
	_ = g.Flush() // a log that cannot be written has nobody to tell
}

// gatherer is a handler whose lines are gathered.
type gatherer struct {
	slog.Handler

	lines *Gathered
}

// patient is the context of records that may wait.
type patient struct{ context.Context } //nolint:containedctx // it is one

// Handle implements slog.Handler.
func (h gatherer) Handle(ctx context.Context, r slog.Record) error {
	if err := h.Handler.Handle(ctx, r); err != nil {
		return err
	}
	if _, waits := ctx.(patient); waits {
		return h.lines.wait()
	}
	return h.lines.Flush()
}

// WithAttrs implements slog.Handler.
func (h gatherer) WithAttrs(attrs []slog.Attr) slog.Handler {
	return gatherer{h.Handler.WithAttrs(attrs), h.lines}
}

// WithGroup implements slog.Handler.
func (h gatherer) WithGroup(name string) slog.Handler {
	return gatherer{h.Handler.WithGroup(name), h.lines}
}
