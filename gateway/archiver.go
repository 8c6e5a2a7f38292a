package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tollgate-dev/tollgate/gateway/archive"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/filter"
)

// archiver writes explanations into the archive, behind the answers they explain.
type archiver struct {
	store  *archive.Store
	chain  func() *filter.Chain
	late   func(f func())
	logger *slog.Logger

	written, dropped, failed atomic.Int64

	mu      sync.Mutex // guards what follows
	waiting []*filter.Exchange
	writing bool
}

// Bounds of an archiver.
const (
	maxArchiving = 4096 // exchanges that wait
	archiveBatch = 100  // exchanges that are written at once
	archiveTime  = 2 * time.Second
)

// newHistory makes the memory of exchanges, and the archive if there is one.
func (g *Gateway) newHistory(cfg *Config) {
	if cfg.Decisions.Shared.For == 0 {
		g.history = explain.NewHistory(cfg.Decisions.Keep, nil)
		return
	}
	a := &archiver{
		store: archive.New(g.deps.Redis, cfg.Redis.Prefix.decisions(), cfg.Decisions.Shared),
		chain: func() *filter.Chain { return g.pipeline().Chain }, late: g.late.Go, logger: g.deps.Logger,
	}
	g.archive, g.history = a, explain.NewHistory(cfg.Decisions.Keep, a.add)
	meter := g.meter()
	shared := must(meter.Int64ObservableCounter("tollgate.decisions.shared", metric.WithDescription("Explanations for the shared store, by what became of them.")))
	must(meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for end, n := range map[string]*atomic.Int64{"written": &a.written, "dropped": &a.dropped, "failed": &a.failed} {
			o.ObserveInt64(shared, n.Load(), metric.WithAttributes(attribute.String("end", end)))
		}
		return nil
	}, shared))
}

// add has an exchange written, unless too many wait.
func (a *archiver) add(ex *filter.Exchange) {
	a.mu.Lock()
	if len(a.waiting) >= maxArchiving {
		a.mu.Unlock()
		a.dropped.Add(1)
		return
	}
	a.waiting = append(a.waiting, ex)
	begin := !a.writing
	a.writing = true
	a.mu.Unlock()
	if begin {
		a.late(a.write)
	}
}

// write writes what waits, until nothing does.
func (a *archiver) write() {
	ended := false
	defer func() {
		if !ended { // a panic: the next exchange begins again
			a.mu.Lock()
			a.writing = false
			a.mu.Unlock()
		}
	}()
	for {
		batch := a.next()
		if ended = len(batch) == 0; ended {
			return
		}
		for org, entries := range a.entries(batch) {
			a.keep(org, entries)
		}
	}
}

// next takes a batch of what waits; it is empty when the writing is over.
func (a *archiver) next() []*filter.Exchange {
	a.mu.Lock()
	defer a.mu.Unlock()
	batch := a.waiting[:min(archiveBatch, len(a.waiting))]
	a.waiting = a.waiting[len(batch):]
	if len(a.waiting) == 0 {
		a.waiting = nil
	}
	a.writing = len(batch) > 0
	return batch
}

// entries explains exchanges, by organisation.
func (a *archiver) entries(batch []*filter.Exchange) map[string][]archive.Entry {
	byOrg := make(map[string][]archive.Entry)
	for _, ex := range batch {
		summary, err := json.Marshal(explain.SummaryOf(ex))
		if err != nil {
			a.failed.Add(1)
			continue
		}
		report, err := json.Marshal(explain.ReportOf(a.chain(), ex))
		if err != nil {
			a.failed.Add(1)
			continue
		}
		byOrg[ex.Event.Org] = append(byOrg[ex.Event.Org], archive.Entry{ID: ex.Event.DecisionID, Time: ex.Event.Start, Summary: summary, Report: report})
	}
	return byOrg
}

func (a *archiver) keep(org string, entries []archive.Entry) {
	ctx, cancel := context.WithTimeout(context.Background(), archiveTime) //nolint:forbidigo // it outlives the requests, and depends on nothing of them
	defer cancel()
	if err := a.store.Keep(ctx, org, entries); err != nil {
		a.failed.Add(int64(len(entries)))
		a.logger.WarnContext(ctx, "decisions not kept for other gateways", "org", org, "count", len(entries), "error", err)
		return
	}
	a.written.Add(int64(len(entries)))
}

// list returns the archived summaries of an organisation that are selected, newest
// first.
func (a *archiver) list(ctx context.Context, org string, q explain.Query) ([]explain.Summary, error) {
	var list []explain.Summary
	err := a.store.List(ctx, org, q.Since, func(raw json.RawMessage) bool {
		var s explain.Summary
		if json.Unmarshal(raw, &s) == nil && q.Match(&s) { // one that cannot be read is of another version
			list = append(list, s)
		}
		return len(list) < q.Limit
	})
	return list, err
}
