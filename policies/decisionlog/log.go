package decisionlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/policies/logfile"
	"github.com/tollgate-dev/tollgate/policies/section"
)

// Deps are the live things a Log needs.
type Deps struct {
	// Stdout is where Config.Stdout writes; required with it.
	Stdout io.Writer
	// HTTPClient posts to the service; nil is one that follows no redirects.
	HTTPClient *http.Client
	// Logger hears of sinks that fail; nil is silence.
	Logger *slog.Logger
	// Random is the source of sampling, from 0 to 1; nil is math/rand/v2.
	Random func() float64
}

// Stats count the fates of events since New.
type Stats struct {
	// Recorded were put into the ring, Dropped fell out of it unwritten, Sampled
	// were left out by SampleAllowed.
	Recorded, Dropped, Sampled int64
	// Written reached every sink, Failed did not reach one of them before Run ended.
	Written, Failed int64
}

// Log takes events. It may be used from several goroutines at once.
type Log struct {
	cfg   Config
	deps  Deps
	rules atomic.Pointer[rules]
	sinks []sink
	wake  chan struct{}
	// reopen is set while the sinks are to look where they write.
	reopen atomic.Bool

	mu    sync.Mutex
	ring  []*Event // guarded by mu; first..first+count wait
	first int
	count int
	bytes int64 // their sizes
	stats Stats
}

// rules select the events to write, and their members.
type rules struct {
	cfg   Config
	masks [][]string
}

// Apply has the events from now on written as cfg says: which, with what masked, and with
// which labels. Where they are written, and how many may wait, stays.
func (l *Log) Apply(cfg Config) error {
	r := &rules{cfg: cfg}
	for _, m := range slices.Concat(builtinMasks(cfg.Inputs), commandMasks(), cfg.Mask) {
		path, err := section.ParseMask(m)
		if err != nil {
			return fmt.Errorf("decision log: mask: %w", err)
		}
		r.masks = append(r.masks, path)
	}
	l.rules.Store(r)
	return nil
}

// sink writes encoded events somewhere. Writing none makes it look where that is.
type sink interface {
	name() string
	write(ctx context.Context, events [][]byte) error
	io.Closer
}

// New opens the file, if one is configured; nothing is written before Run.
func New(cfg Config, deps Deps) (*Log, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("decision log: %w", err)
	}
	deps.Logger = cmp.Or(deps.Logger, slog.New(slog.DiscardHandler))
	if deps.Random == nil {
		deps.Random = rand.Float64
	}
	if deps.HTTPClient == nil {
		deps.HTTPClient = &http.Client{
			Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, IdleConnTimeout: time.Minute},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	l := &Log{cfg: cfg, deps: deps, wake: make(chan struct{}, 1), ring: make([]*Event, cfg.Buffer)}
	if err := l.Apply(cfg); err != nil {
		return nil, err
	}
	if cfg.Stdout {
		if deps.Stdout == nil {
			return nil, errors.New("decision log: no standard output")
		}
		l.sinks = append(l.sinks, &streamSink{w: deps.Stdout})
	}
	if cfg.File != nil {
		f, err := logfile.Open(*cfg.File)
		if err != nil {
			return nil, fmt.Errorf("decision log: %w", err)
		}
		l.sinks = append(l.sinks, fileSink{f})
	}
	if cfg.Service != nil {
		l.sinks = append(l.sinks, &serviceSink{cfg: *cfg.Service, client: deps.HTTPClient})
	}
	return l, nil
}

// Record takes an event. It never waits: when the ring is full, the oldest
// events make room and are counted as dropped.
func (l *Log) Record(e Event) {
	of := &l.rules.Load().cfg
	sampled := e.plain() && of.SampleAllowed < 1 && l.deps.Random() >= of.SampleAllowed
	if !sampled && !of.Inputs && e.Input != nil {
		light(&e)
	}
	l.mu.Lock()
	if sampled {
		l.stats.Sampled++
	} else {
		for l.count == len(l.ring) || l.count > 0 && l.bytes+e.Size > l.cfg.BufferBytes {
			l.popLocked()
			l.stats.Dropped++
		}
		l.ring[(l.first+l.count)%len(l.ring)] = &e
		l.count++
		l.bytes += e.Size
		l.stats.Recorded++
	}
	l.mu.Unlock()
	l.stir()
}

// Reopen makes the log follow a file that was renamed, without waiting for the next
// event.
func (l *Log) Reopen() {
	l.reopen.Store(true)
	l.stir()
}

// stir wakes Run.
func (l *Log) stir() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Stats are the counts so far.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats
}

// take removes up to n waiting events.
func (l *Log) take(n int) []*Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	n = min(n, l.count)
	out := make([]*Event, 0, n)
	for range n {
		out = append(out, l.popLocked())
	}
	return out
}

// popLocked removes the oldest event; there must be one.
func (l *Log) popLocked() *Event {
	e := l.ring[l.first]
	l.ring[l.first] = nil
	l.first = (l.first + 1) % len(l.ring)
	l.count--
	l.bytes -= e.Size
	return e
}

// grace is how long Run goes on writing after its context has ended.
const grace = 3 * time.Second

// Run writes events until the context ends, then finishes the batch it is at and writes
// the rest, for a few seconds at most, and closes the sinks. Its error is the context's
// cause.
func (l *Log) Run(ctx context.Context) error {
	writing, release := outlive(ctx, grace)
	defer release()
	for ctx.Err() == nil {
		select {
		case <-l.wake:
		case <-ctx.Done():
			continue
		}
		l.gather(ctx)
		l.drain(writing)
	}
	l.drain(writing)
	l.abandon(writing)
	for _, s := range l.sinks {
		if err := s.Close(); err != nil {
			l.failed(writing, s, err)
		}
	}
	l.deps.HTTPClient.CloseIdleConnections()
	return context.Cause(ctx)
}

// outlive returns a context with the values of ctx that ends d after it.
func outlive(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var timer *time.Timer // written once, before unhook can say that it was
	started := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		timer = time.AfterFunc(d, cancel)
		close(started)
	})
	return out, func() {
		if !unhook() {
			<-started
			timer.Stop()
		}
		cancel()
	}
}

// gather waits a little for company, when a service takes batches.
func (l *Log) gather(ctx context.Context) {
	if l.cfg.Service == nil {
		return
	}
	delay := cmp.Or(l.cfg.Service.Delay, 5*time.Second)
	timer := time.NewTimer(delay)
	defer timer.Stop()
	for {
		l.mu.Lock()
		enough := l.count >= l.batch()
		l.mu.Unlock()
		if enough {
			return
		}
		select {
		case <-timer.C:
			return
		case <-l.wake:
		case <-ctx.Done():
			return
		}
	}
}

// batch is how many events are written together.
func (l *Log) batch() int {
	n := 500
	if l.cfg.Service != nil && l.cfg.Service.Batch > 0 {
		n = l.cfg.Service.Batch
	}
	return min(n, len(l.ring))
}

// drain writes waiting events, batch by batch.
func (l *Log) drain(ctx context.Context) {
	for ctx.Err() == nil {
		events := l.take(l.batch())
		if len(events) == 0 && !l.reopen.Swap(false) {
			return
		}
		encoded := make([][]byte, 0, len(events))
		lost := 0
		for _, e := range events {
			text, err := l.encode(e)
			if err != nil {
				lost++
				l.deps.Logger.LogAttrs(ctx, slog.LevelError, "decision not encoded",
					slog.String("decision_id", e.DecisionID), slog.String("error", err.Error()))
				continue
			}
			encoded = append(encoded, text)
		}
		reached := true
		for _, s := range l.sinks {
			if err := s.write(ctx, encoded); err != nil {
				reached = false
				l.failed(ctx, s, err)
			}
		}
		l.settle(len(encoded), lost, reached)
	}
}

// abandon counts the events that there was no time to write.
func (l *Log) abandon(ctx context.Context) {
	l.mu.Lock()
	left := l.count
	clear(l.ring)
	l.count, l.bytes = 0, 0
	l.stats.Failed += int64(left)
	l.mu.Unlock()
	if left > 0 {
		l.deps.Logger.LogAttrs(ctx, slog.LevelError, "decisions not written before the end", slog.Int("count", left))
	}
}

func (l *Log) settle(encoded, lost int, reached bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Failed += int64(lost)
	if reached {
		l.stats.Written += int64(encoded)
	} else {
		l.stats.Failed += int64(encoded)
	}
}

func (l *Log) failed(ctx context.Context, s sink, err error) {
	l.deps.Logger.LogAttrs(ctx, slog.LevelError, "decision log sink failed",
		slog.String("sink", s.name()), slog.String("error", err.Error()))
}
