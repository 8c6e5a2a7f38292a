package ledger

import (
	"context"
	"maps"
	"slices"
	"time"
)

// memoryHistory holds the roll-ups of one organisation.
type memoryHistory struct {
	RollupInput

	series  map[seriesKey]Series
	rollups map[Unit]map[int64]*bucket // by start, in Unix milliseconds
}

// bucket holds the costs of one unit of time, with the expiry of the roll-up.
type bucket struct {
	micro map[Item]int64
	ends  int64
}

// note records a change of a resource's rate.
func (m *memoryHistory) note(r *Record, rate, at int64) {
	if rate != 0 {
		m.Changes = append(m.Changes, Change{Item: NewItem(r.ID, r.Kind, r.Owner, r.Metadata), Rate: rate, At: time.UnixMilli(at)})
	}
}

// once records the one-time cost of a hold.
func (m *memoryHistory) once(h *hold, micro, at int64) {
	if micro > 0 {
		m.Changes = append(m.Changes, Change{Item: NewRunItem(h.Kind, h.Owner, h.Metadata), Once: micro, At: time.UnixMilli(at)})
	}
}

// RollupInput implements RollupStore.
func (m *Memory) RollupInput(_ context.Context, org string) (RollupInput, error) {
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
func (m *Memory) RollupProgress(ctx context.Context, org string) (RollupProgress, error) {
	t, err := m.RollupInput(ctx, org)
	t.Pending = int64(len(t.Changes))
	return t.RollupProgress, err
}

// Post implements RollupStore.
func (m *Memory) Post(_ context.Context, org string, p *Posting) (bool, error) {
	l, now, done := m.open(org)
	defer done()
	past := &l.history
	if past.Version != p.Version {
		return false, nil
	}
	past.Version, past.Until, past.Changes = past.Version+1, p.Until, past.Changes[p.Changes:]
	if past.rollups == nil {
		past.rollups, past.series = map[Unit]map[int64]*bucket{Hourly: {}, Daily: {}}, make(map[seriesKey]Series)
	}
	for _, s := range p.Series {
		if past.series[s.Item.key()] = s; s.Rate == 0 {
			delete(past.series, s.Item.key())
		}
	}
	for _, r := range slices.Concat(p.Rollups, p.Billed) {
		for _, u := range []Unit{Hourly, Daily} {
			start := u.Start(r.Start)
			b := past.rollups[u][start.UnixMilli()]
			if b == nil {
				b = &bucket{micro: make(map[Item]int64)}
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
		for _, a := range l.of(r.Item.Owner, now) {
			from := r.Start.UnixMilli()
			a.correct(r.Micro, from, from+hour)
		}
	}
	return true, nil
}

// Rollups implements RollupStore.
func (m *Memory) Rollups(_ context.Context, org string, u Unit, starts []time.Time) ([]Rollup, error) {
	l, now, done := m.open(org)
	defer done()
	var out []Rollup
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
			out = append(out, Rollup{Start: start.UTC(), Item: item, Micro: micro})
		}
	}
	return out, nil
}
