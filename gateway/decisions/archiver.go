package decisions

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/gateway/tasks"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// archiver writes explanations to the archive after their responses have been sent.
type archiver struct {
	store  *Archive
	chain  func() *filter.Chain
	logger *slog.Logger

	written, dropped, failed atomic.Int64

	backlog tasks.Batcher[explain.Entry]
	reports bytes.Buffer // the batch being written
}

const (
	// archiveTime limits one write.
	archiveTime = 2 * time.Second
	// batchDelay is the time to wait for more explanations before a write, so that one write stores several explanations.
	batchDelay = 50 * time.Millisecond
	// keptRoom is the size in bytes of the buffer that is reused for the next batch.
	keptRoom = 1 << 20
)

// newHistory creates the history of exchanges and, if configured, the archive.
func (d *Decisions) newHistory(cfg *settings.Config) {
	if cfg.Decisions.Shared.For == 0 {
		d.History = explain.NewHistory(cfg.Decisions.Keep, nil)
		return
	}
	a := &archiver{
		store: NewArchive(d.deps.Redis, cfg.Redis.Prefix.Decisions(), cfg.Decisions.Shared),
		chain: d.deps.Chain, logger: d.deps.Logger,
	}
	a.backlog.Write, a.backlog.Go, a.backlog.Pause = a.writeAll, d.deps.Go, batchDelay
	d.archive, d.History = a, explain.NewHistory(cfg.Decisions.Keep, a.add)
	telemetry.Must(d.deps.Meter.Int64ObservableCounter("tollgate.decisions.shared",
		metric.WithDescription("Explanations of decisions to write to the shared store, by outcome."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			for end, n := range map[string]*atomic.Int64{"written": &a.written, "dropped": &a.dropped, "failed": &a.failed} {
				o.Observe(n.Load(), metric.WithAttributes(attribute.String("end", end)))
			}
			return nil
		})))
}

// add queues an explanation. It drops it if the queue is full.
func (a *archiver) add(p explain.Entry) {
	if !a.backlog.Add(p) {
		a.dropped.Add(1)
	}
}

// writeAll writes explanations.
func (a *archiver) writeAll(batch []explain.Entry) {
	lines := make([]store.Line, 0, len(batch))
	noters, encoder := a.chain().Explainers(), json.NewEncoder(&a.reports)
	defer a.reset()
	for _, p := range batch {
		x, begin := p.Report(noters), a.reports.Len()
		if encoder.Encode(x) == nil {
			report := a.reports.Bytes()[begin : a.reports.Len()-1] // without the newline
			lines = append(lines, store.Line{List: x.Caller.Org, ID: x.DecisionID, Text: report})
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), archiveTime) //nolint:forbidigo // it outlives the requests, and depends on nothing of them
	defer cancel()
	added, err := a.store.Append(ctx, lines...)
	a.written.Add(int64(added))
	if lost := len(batch) - added; lost > 0 {
		a.failed.Add(int64(lost))
		a.logger.WarnContext(ctx, "cannot archive decisions in the shared store", "count", lost, "error", err)
	}
}

// reset prepares the buffer for the next batch.
func (a *archiver) reset() {
	if a.reports.Reset(); a.reports.Cap() > keptRoom {
		a.reports = bytes.Buffer{}
	}
}

// find returns the archived report of a decision of the organisations. It returns nil if the archive does not contain the decision or if an
// incompatible version wrote it.
func (a *archiver) find(ctx context.Context, orgs []string, id string) (*explain.Report, error) {
	text, err := a.store.Find(ctx, orgs, id)
	x := new(explain.Report)
	if err != nil || text == nil || json.Unmarshal(text, x) != nil {
		return nil, err
	}
	return x, nil
}

// mostRead limits the number of archived decisions, of about 2.5 KB each, that one list reads.
const mostRead = 5000

// list returns the archived summaries of an organisation selected by q, newest first, and at least q.Limit of them if they exist. If mostRead
// was reached, only calls that began at the time searched or later are complete; otherwise, searched is zero.
func (a *archiver) list(ctx context.Context, org string, q explain.Query) (list []explain.Summary, searched time.Time, err error) {
	words := wordsOf(q)
	in := Range{Since: q.Since, Before: q.Before, Most: mostRead}
	searched, err = a.store.List(ctx, org, in, func(raw json.RawMessage, end time.Time) bool {
		if len(list) >= q.Limit && !list[q.Limit-1].Time.Before(end) {
			return false
		}
		for _, word := range words {
			if !bytes.Contains(raw, word) {
				return true
			}
		}
		if s := summaryOf(raw); s != nil && q.Match(s) {
			at, _ := slices.BinarySearchFunc(list, s.Time, func(x explain.Summary, t time.Time) int { return t.Compare(x.Time) })
			list = slices.Insert(list, at, *s)
		}
		return true
	})
	return list, searched, err
}

// wordsOf returns texts that occur in the report of every selected decision. Searching for them is much cheaper than decoding a
// report.
func wordsOf(q explain.Query) (words [][]byte) {
	add := func(member, value string) {
		if value != "" {
			text, _ := json.Marshal(map[string]string{member: value}) // in the encoding of reports
			words = append(words, text[1:len(text)-1])
		}
	}
	add("team", q.Team)
	add("key", q.Key)
	add("operation", q.Operation)
	if q.Resource != "" { // as a member, or in the path
		text, _ := json.Marshal(q.Resource) // a string
		words = append(words, text[1:len(text)-1])
	}
	if q.Refused {
		add("verdict", string(explain.Refused))
	}
	if q.Own {
		words = append(words, []byte(`"own":{`))
	}
	return words
}

// summaryOf returns the summary of an archived report, or nil if it was written by an incompatible version.
func summaryOf(raw json.RawMessage) *explain.Summary {
	var x explain.Report
	if json.Unmarshal(raw, &x) != nil {
		return nil
	}
	return new(x.Summary())
}
