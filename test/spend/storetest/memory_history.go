package storetest

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// seriesKey identifies a series.
type seriesKey struct {
	resource string
	owner    ledger.Owner
}

func keyOf(i *ledger.Item) seriesKey { return seriesKey{i.Resource, i.Owner} }

// memoryHistory holds the roll-ups of one organisation.
type memoryHistory struct {
	ledger.RollupInput

	series  map[seriesKey]ledger.Series
	rollups map[ledger.Unit]map[int64]*bucket // by start, in Unix milliseconds
}

// bucket holds the costs of one unit of time, with the expiry of the roll-up.
type bucket struct {
	micro map[ledger.Item]int64
	ends  int64
}

// note records a change of a resource's rate.
func (m *memoryHistory) note(r *ledger.Record, rate, at int64) {
	if rate != 0 {
		m.Changes = append(m.Changes, ledger.Change{Item: ledger.NewItem(r.ID, r.Kind, r.Owner, r.Metadata), Rate: rate, At: time.UnixMilli(at)})
	}
}

// once records the one-time cost of a hold.
func (m *memoryHistory) once(h *hold, micro, at int64) {
	if micro > 0 {
		m.Changes = append(m.Changes, ledger.Change{Item: ledger.NewRunItem(h.Kind, h.Owner, h.Metadata), Once: micro, At: time.UnixMilli(at)})
	}
}

// RollupInput implements RollupStore.
func (m *Memory) RollupInput(_ context.Context, org string) (ledger.RollupInput, error) {
	l, now, done := m.open(org)
	defer done()
	t := l.history.RollupInput
	t.Now, t.Series, t.Changes = time.UnixMilli(now), slices.Collect(maps.Values(l.history.series)), slices.Clone(t.Changes)
	if t.Until.IsZero() {
		for _, r := range l.resources {
			t.Resources = append(t.Resources, *r)
		}
	}
	return t, nil
}

// RollupProgress implements RollupStore.
func (m *Memory) RollupProgress(ctx context.Context, org string) (ledger.RollupProgress, error) {
	t, err := m.RollupInput(ctx, org)
	t.Pending = int64(len(t.Changes))
	return t.RollupProgress, err
}

// Post implements RollupStore.
func (m *Memory) Post(_ context.Context, org string, p *ledger.Posting) (bool, error) {
	l, now, done := m.open(org)
	defer done()
	past := &l.history
	if past.Version != p.Version {
		return false, nil
	}
	past.Version, past.Until, past.Changes = past.Version+1, p.Until, past.Changes[p.Changes:]
	if past.rollups == nil {
		past.rollups, past.series = map[ledger.Unit]map[int64]*bucket{ledger.Hourly: {}, ledger.Daily: {}}, make(map[seriesKey]ledger.Series)
	}
	for _, s := range p.Series {
		if past.series[keyOf(&s.Item)] = s; s.Rate == 0 {
			delete(past.series, keyOf(&s.Item))
		}
	}
	for _, r := range slices.Concat(p.Rollups, p.Billed) {
		for _, u := range []ledger.Unit{ledger.Hourly, ledger.Daily} {
			start := u.Start(r.Start)
			b := past.rollups[u][start.UnixMilli()]
			if b == nil {
				b = &bucket{micro: make(map[ledger.Item]int64)}
				past.rollups[u][start.UnixMilli()] = b
			}
			b.ends = p.Retention.End(u, start).UnixMilli()
			b.micro[r.Item] += r.Micro
		}
	}
	for _, r := range p.Billed {
		if p.HistoryOnly {
			break
		}
		for _, a := range l.of(p.Transfers.Payer(r.Item.Owner, r.Start), now) {
			from := r.Start.UnixMilli()
			a.correct(r.Micro, from, from+hour)
		}
	}
	return true, nil
}

// Rollups implements RollupStore.
func (m *Memory) Rollups(_ context.Context, org string, u ledger.Unit, starts []time.Time) ([]ledger.Rollup, error) {
	l, now, done := m.open(org)
	defer done()
	var out []ledger.Rollup
	for _, start := range starts {
		b := l.history.rollups[u][start.UnixMilli()]
		if b == nil {
			continue
		}
		if b.ends <= now {
			delete(l.history.rollups[u], start.UnixMilli())
			continue
		}
		for item, micro := range b.micro {
			out = append(out, ledger.Rollup{Start: start.UTC(), Item: item, Micro: micro})
		}
	}
	return out, nil
}
