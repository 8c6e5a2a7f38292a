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

// Deps holds the dependencies of a Log.
type Deps struct {
	// Stdout is the stream for Config.Stdout. It is required if that is set.
	Stdout io.Writer
	// HTTPClient sends events to the service; nil means a client that does not follow redirects.
	HTTPClient *http.Client
	// Logger logs failing sinks; nil disables logging.
	Logger *slog.Logger
	// Random returns numbers from 0 to 1 for sampling; nil means math/rand/v2.
	Random func() float64
}

// Stats counts events since New. Dropped, Written and Failed are sums over all sinks.
type Stats struct {
	// Recorded counts events to be written. Sampled counts events left out because of SampleAllowed.
	Recorded, Sampled int64
	// Dropped counts events discarded because the buffer was full.
	Dropped int64
	// Written counts events that a sink accepted. Failed counts events that were rejected, or not accepted before Run returned.
	Written, Failed int64
}

// Log records events. It is safe for concurrent use.
type Log struct {
	deps   Deps
	rules  atomic.Pointer[rules]
	queues []*queue
	file   *logfile.Writer // nil without a file

	recorded, sampled atomic.Int64
}

// rules select the events to write and their members.
type rules struct {
	cfg   Config
	masks [][]string
}

// Apply changes which events are recorded, their masks and their labels, from the next event on. Sinks and buffer sizes do not
// change.
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

// sink writes encoded events. Writing no events makes it check its destination, for example a renamed file.
type sink interface {
	name() string
	write(ctx context.Context, events [][]byte) error
	io.Closer
}

// New opens the configured file. Events are only written by Run.
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
			return nil, errors.New("decision log: Deps.Stdout must be set if the log is written to stdout")
		}
		l.queues = append(l.queues, newQueue(&cfg, &streamSink{w: deps.Stdout}))
	}
	if cfg.File != nil {
		f, err := logfile.Open(*cfg.File, deps.Logger)
		if err != nil {
			return nil, fmt.Errorf("decision log: %w", err)
		}
		l.file = f
		l.queues = append(l.queues, newQueue(&cfg, fileSink{f}))
	}
	if cfg.Service != nil {
		q := newQueue(&cfg, &serviceSink{cfg: *cfg.Service, client: deps.HTTPClient})
		q.batch, q.delay = min(cmp.Or(cfg.Service.Batch, q.batch), cfg.Buffer), cmp.Or(cfg.Service.Delay, 5*time.Second)
		l.queues = append(l.queues, q)
	}
	return l, nil
}

// Record queues an event. It never blocks: if the buffer of a sink is full, its oldest events are dropped and counted.
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

// Reopen makes the log follow a renamed file without waiting for the next event.
func (l *Log) Reopen() {
	for _, q := range l.queues {
		q.reopen.Store(true)
		q.stir()
	}
}

// Stats returns the current counts.
func (l *Log) Stats() Stats {
	s := Stats{Recorded: l.recorded.Load(), Sampled: l.sampled.Load()}
	for _, q := range l.queues {
		b := q.backlog()
		s.Dropped, s.Written, s.Failed = s.Dropped+b.Dropped, s.Written+b.written, s.Failed+b.failed
	}
	return s
}

// Backlogs returns the backlog of each sink.
func (l *Log) Backlogs() []Backlog {
	out := make([]Backlog, len(l.queues))
	for i, q := range l.queues {
		out[i] = q.backlog()
	}
	return out
}

// RotateError returns the reason why the file has grown beyond its maximum size, or nil.
func (l *Log) RotateError() error {
	if l.file == nil {
		return nil
	}
	return l.file.RotateError()
}

// grace is how long Run continues to write after its context has ended.
const grace = 3 * time.Second

// Run writes events until ctx ends. Then it writes the queued events for up to a few seconds, closes the sinks, and returns
// context.Cause(ctx). A failing sink does not delay the others.
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

// Close closes the sinks of a log on which Run is not called. Run closes them itself.
func (l *Log) Close() {
	for _, q := range l.queues {
		_ = q.sink.Close() // nothing is queued, or Run has closed it
	}
}

// outlive returns a context with the values of ctx that ends d after ctx does.
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

// deliver writes the events of a queue until ctx ends, and then the remaining ones.
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
		l.deps.Logger.LogAttrs(writing, slog.LevelError, "decisions lost at shutdown", slog.String("sink", q.sink.name()),
			slog.Int("count", left))
	}
	if err := q.sink.Close(); err != nil {
		l.failed(writing, q, err)
	}
}

// maxPause is the longest time between two attempts to write to a sink, unless the sink asks for more.
const maxPause = time.Minute

// drain writes the queued events in batches. Batches that the sink may accept later are queued again and retried after a pause,
// which ends early if ctx ends.
func (l *Log) drain(ctx, writing context.Context, q *queue) {
	pauses := backoff.NewExponentialBackOff()
	pauses.MaxInterval = maxPause
	for writing.Err() == nil {
		events := q.dequeue()
		if len(events) == 0 && !q.reopen.Swap(false) {
			return
		}
		events, encoded := l.encoded(writing, q, events)
		err := q.sink.write(writing, encoded)
		later, isLater := errors.AsType[*laterError](err)
		switch {
		case err == nil:
			if q.took(len(events)) {
				l.deps.Logger.LogAttrs(writing, slog.LevelInfo, "decision log sink recovered",
					slog.String("sink", q.sink.name()), slog.Int64("dropped", q.backlog().Dropped))
			}
			pauses.Reset()
			continue
		case !isLater:
			q.lose(len(events))
			l.failed(writing, q, err)
			continue
		case q.requeue(events, err):
			l.failed(writing, q, err)
		}
		ended := ctx.Done()
		if ctx.Err() != nil {
			ended = nil
		}
		pause := time.NewTimer(max(min(pauses.NextBackOff(), maxPause), later.after)) // NextBackOff can exceed the maximum by half
		select {
		case <-pause.C:
		case <-ended:
		case <-writing.Done():
		}
		pause.Stop()
	}
}

// encoded encodes events and returns those that could be encoded.
func (l *Log) encoded(ctx context.Context, q *queue, events []*Event) (fit []*Event, texts [][]byte) {
	for _, e := range events {
		text, err := l.encode(e)
		if err != nil {
			q.lose(1)
			l.deps.Logger.LogAttrs(ctx, slog.LevelError, "cannot encode decision",
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
