package usage

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// Intervals and limits of a Recorder.
const (
	// Interval is the interval between writes.
	Interval = 2 * time.Second
	// writeTimeout is the timeout of one Flush.
	writeTimeout = 2 * time.Second
	// maxPending is the maximum number of rows that wait for the store. Calls that need another row are dropped.
	maxPending = 4096
	// maxBatch is the maximum number of rows in one write.
	maxBatch = 256
)

// Deps are the dependencies of a Recorder. All are required.
type Deps struct {
	Writer Writer
	Now    func() time.Time
	Logger *slog.Logger
	Meter  metric.Meter
}

// Recorder adds up calls and passes the totals to a Writer. It is safe for concurrent use. Run writes the totals periodically; without Run,
// only Flush writes them.
type Recorder struct {
	deps    Deps
	source  string
	dropped metric.Int64Counter

	mu      sync.Mutex // guards the fields below; not held while waiting
	pending map[string]*pending
	rows    int // pending and unwritten rows of all organisations

	flushing sync.Mutex // held by the current Flush; guards the fields below
	unsent   []Batch    // in order
	seq      int64
	failing  bool
}

// pending holds the totals of one organisation that have not been collected yet.
type pending struct {
	rows   map[RowKey]*Totals
	agents map[string]struct{}
}

// NewRecorder returns an empty Recorder.
func NewRecorder(deps Deps) (*Recorder, error) {
	r := &Recorder{deps: deps, source: rand.Text(), pending: make(map[string]*pending)}
	var err error
	r.dropped, err = deps.Meter.Int64Counter("tollgate.legacy.dropped",
		metric.WithDescription("Number of calls to legacy APIs that the migration report does not contain."))
	if err != nil {
		return nil, fmt.Errorf("usage: %w", err)
	}
	return r, nil
}

// Record counts a call. It does not wait for the store.
func (r *Recorder) Record(ctx context.Context, c Call) {
	now := r.deps.Now()
	agent := Agent(c.Agent)
	r.mu.Lock()
	dropped := 0
	for _, op := range c.Operations {
		if s := r.totalsLocked(c.Org, RowKey{Key: c.Key, Dialect: c.Dialect, Operation: op, Agent: agent}); s != nil {
			s.add(&c, now)
		} else {
			dropped++
		}
	}
	r.mu.Unlock()
	if dropped > 0 {
		r.dropped.Add(ctx, int64(dropped))
	}
}

// totalsLocked returns the totals of a row, or nil if there are too many rows.
func (r *Recorder) totalsLocked(org string, who RowKey) *Totals {
	p := r.pending[org]
	if p == nil {
		p = &pending{rows: make(map[RowKey]*Totals), agents: make(map[string]struct{})}
		r.pending[org] = p
	}
	if _, known := p.agents[who.Agent]; !known && len(p.agents) >= MaxAgents {
		who.Agent = OtherAgent
	}
	s := p.rows[who]
	if s != nil {
		return s
	}
	if r.rows >= maxPending {
		return nil
	}
	s = new(Totals)
	p.rows[who] = s
	p.agents[who.Agent] = struct{}{}
	r.rows++
	return s
}

// Run calls Flush every Interval until ctx ends, and once more afterwards. It returns nil.
func (r *Recorder) Run(ctx context.Context) error {
	r.dropped.Add(ctx, 0) // creates the series before its first increment
	ticker := time.NewTicker(Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			last := context.WithoutCancel(ctx)
			if err := r.Flush(last); err != nil {
				r.countUnwritten(last)
			}
			return nil
		case <-ticker.C:
			_ = r.Flush(ctx) // Flush logs the error; the next call tries again
		}
	}
}

// countUnwritten counts the calls that will never be written.
func (r *Recorder) countUnwritten(ctx context.Context) {
	r.flushing.Lock()
	defer r.flushing.Unlock()
	var calls int64
	for _, b := range r.unsent {
		for _, row := range b.Rows {
			calls += row.Count
		}
	}
	r.dropped.Add(ctx, calls)
	r.deps.Logger.WarnContext(ctx, "dropping unwritten legacy call counts", "calls", calls)
}

// Flush writes all calls recorded so far. After an error, the unwritten totals are kept and written by the next Flush.
func (r *Recorder) Flush(ctx context.Context) error {
	r.flushing.Lock()
	defer r.flushing.Unlock()
	r.collect()
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	for len(r.unsent) > 0 {
		b := r.unsent[0]
		if err := r.deps.Writer.Write(ctx, b); err != nil {
			if !r.failing {
				r.deps.Logger.WarnContext(ctx, "cannot write legacy call counts", "error", err.Error())
			}
			r.failing = true
			return fmt.Errorf("write legacy call counts: %w", err)
		}
		r.failing = false
		r.unsent = r.unsent[1:]
		r.mu.Lock()
		r.rows -= len(b.Rows)
		r.mu.Unlock()
	}
	return nil
}

// collect converts the pending totals to batches. Only Flush may call it.
func (r *Recorder) collect() {
	r.mu.Lock()
	taken := r.pending
	r.pending = make(map[string]*pending, len(taken))
	r.mu.Unlock()
	for _, org := range slices.Sorted(maps.Keys(taken)) {
		rows := make([]Row, 0, len(taken[org].rows))
		for who, sum := range taken[org].rows {
			rows = append(rows, Row{who, *sum})
		}
		for chunk := range slices.Chunk(rows, maxBatch) {
			r.seq++
			r.unsent = append(r.unsent, Batch{Org: org, Source: r.source, Seq: r.seq, Rows: chunk})
		}
	}
}
