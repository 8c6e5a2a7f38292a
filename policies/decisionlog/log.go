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
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/errgroup"

	"github.com/tollgate-dev/tollgate/config/panics"
	"github.com/tollgate-dev/tollgate/policies/logfile"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
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

// Stats count events since New. Dropped, Written and Failed are counted for each sink, and added up.
type Stats struct {
	// Recorded were to be written, Sampled were left out by SampleAllowed.
	Recorded, Sampled int64
	// Dropped made room for newer events before the sink had taken them.
	Dropped int64
	// Written were taken by the sink. Failed were refused, or not taken before Run ended.
	Written, Failed int64
}

// Log takes events. It may be used from several goroutines at once.
type Log struct {
	deps   Deps
	rules  atomic.Pointer[rules]
	queues []*queue

	recorded, sampled atomic.Int64
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
		path, err := policyconfig.ParseMask(m)
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
	l := &Log{deps: deps}
	if err := l.Apply(cfg); err != nil {
		return nil, err
	}
	if cfg.Stdout {
		if deps.Stdout == nil {
			return nil, errors.New("decision log: no standard output")
		}
		l.queues = append(l.queues, newQueue(&cfg, &streamSink{w: deps.Stdout}))
	}
	if cfg.File != nil {
		f, err := logfile.Open(*cfg.File)
		if err != nil {
			return nil, fmt.Errorf("decision log: %w", err)
		}
		l.queues = append(l.queues, newQueue(&cfg, fileSink{f}))
	}
	if cfg.Service != nil {
		q := newQueue(&cfg, &serviceSink{cfg: *cfg.Service, client: deps.HTTPClient})
		q.batch, q.delay = min(cmp.Or(cfg.Service.Batch, q.batch), cfg.Buffer), cmp.Or(cfg.Service.Delay, 5*time.Second)
		l.queues = append(l.queues, q)
	}
	return l, nil
}

// Record takes an event. It never waits: where the buffer of a sink is full, the oldest
// events make room and are counted as dropped.
func (l *Log) Record(e Event) {
	of := &l.rules.Load().cfg
	if e.plain() && of.SampleAllowed < 1 && l.deps.Random() >= of.SampleAllowed {
		l.sampled.Add(1)
		return
	}
	if !of.Inputs && e.Input != nil {
		light(&e)
	}
	l.recorded.Add(1)
	for _, q := range l.queues {
		q.add(&e)
	}
}

// Reopen makes the log follow a file that was renamed, without waiting for the next
// event.
func (l *Log) Reopen() {
	for _, q := range l.queues {
		q.reopen.Store(true)
		q.stir()
	}
}

// Stats are the counts so far.
func (l *Log) Stats() Stats {
	s := Stats{Recorded: l.recorded.Load(), Sampled: l.sampled.Load()}
	for _, q := range l.queues {
		b := q.backlog()
		s.Dropped, s.Written, s.Failed = s.Dropped+b.Dropped, s.Written+b.written, s.Failed+b.failed
	}
	return s
}

// Backlogs are the events that the sinks have not taken, one for each sink.
func (l *Log) Backlogs() []Backlog {
	out := make([]Backlog, len(l.queues))
	for i, q := range l.queues {
		out[i] = q.backlog()
	}
	return out
}

// grace is how long Run goes on writing after its context has ended.
const grace = 3 * time.Second

// Run writes events until the context ends, then the rest, for a few seconds at most, and
// closes the sinks. A sink that takes nothing holds up no other. Its error is the context's
// cause.
func (l *Log) Run(ctx context.Context) error {
	var all errgroup.Group
	for _, q := range l.queues {
		all.Go(func() error { return panics.Catch(func() { l.deliver(ctx, q) }) })
	}
	err := all.Wait()
	l.deps.HTTPClient.CloseIdleConnections()
	panics.Raise(err)
	<-ctx.Done()
	return context.Cause(ctx)
}

// Close closes the sinks of a log that does not run. Run closes them at its end.
func (l *Log) Close() {
	for _, q := range l.queues {
		_ = q.sink.Close() // nothing waits to be written, or Run has closed it
	}
}

// outlive returns a context with the values of ctx that ends d after it.
func outlive(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(d):
			cancel()
		case <-out.Done():
		}
	})
	return out, func() { stop(); cancel() }
}

// deliver writes the events of a queue until the context ends, and then the rest.
func (l *Log) deliver(ctx context.Context, q *queue) {
	writing, release := outlive(ctx, grace)
	defer release()
	for ctx.Err() == nil {
		select {
		case <-q.wake:
		case <-ctx.Done():
			continue
		}
		q.gather(ctx)
		l.drain(ctx, writing, q)
	}
	l.drain(ctx, writing, q)
	if left := q.abandon(); left > 0 {
		l.deps.Logger.LogAttrs(writing, slog.LevelError, "decisions not written before the end", slog.String("sink", q.sink.name()), slog.Int("count", left))
	}
	if err := q.sink.Close(); err != nil {
		l.failed(writing, q, err)
	}
}

// maxPause bounds the time between two attempts to write to a sink, unless the sink asks for more.
const maxPause = time.Minute

// drain writes waiting events, batch by batch. Those that the sink may take later go back, and
// are tried again after a pause, which the end of ctx cuts short.
func (l *Log) drain(ctx, writing context.Context, q *queue) {
	pauses := backoff.NewExponentialBackOff()
	pauses.MaxInterval = maxPause
	for writing.Err() == nil {
		events := q.take()
		if len(events) == 0 && !q.reopen.Swap(false) {
			return
		}
		events, encoded := l.encoded(writing, q, events)
		err := q.sink.write(writing, encoded)
		later, isLater := errors.AsType[*laterError](err)
		switch {
		case err == nil:
			if q.took(len(events)) {
				l.deps.Logger.LogAttrs(writing, slog.LevelInfo, "decision log sink works again",
					slog.String("sink", q.sink.name()), slog.Int64("dropped", q.backlog().Dropped))
			}
			pauses.Reset()
			continue
		case !isLater:
			q.lose(len(events))
			l.failed(writing, q, err)
			continue
		case q.giveBack(events, err):
			l.failed(writing, q, err)
		}
		ended := ctx.Done()
		if ctx.Err() != nil {
			ended = nil
		}
		pause := time.NewTimer(max(min(pauses.NextBackOff(), maxPause), later.after)) // it may return half as much again
		select {
		case <-pause.C:
		case <-ended:
		case <-writing.Done():
		}
		pause.Stop()
	}
}

// encoded encodes events, and returns those that can be encoded.
func (l *Log) encoded(ctx context.Context, q *queue, events []*Event) (fit []*Event, texts [][]byte) {
	for _, e := range events {
		text, err := l.encode(e)
		if err != nil {
			q.lose(1)
			l.deps.Logger.LogAttrs(ctx, slog.LevelError, "decision not encoded",
				slog.String("decision_id", e.DecisionID), slog.String("error", err.Error()))
			continue
		}
		fit, texts = append(fit, e), append(texts, text)
	}
	return fit, texts
}

func (l *Log) failed(ctx context.Context, q *queue, err error) {
	l.deps.Logger.LogAttrs(ctx, slog.LevelError, "decision log sink failed",
		slog.String("sink", q.sink.name()), slog.String("error", err.Error()))
}
