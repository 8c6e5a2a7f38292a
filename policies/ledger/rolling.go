package ledger

import (
	"cmp"
	"slices"
	"time"
)

const (
	// rollSize is the approximate number of roll-ups, series or changes in one posting: a script processes them in a few milliseconds.
	rollSize = 100
	// rollHours is the largest number of hours of a series in one posting.
	rollHours = 100
)

// rolling computes postings from a RollupInput: first for the changes, in order, and then for all series up to the present.
type rolling struct {
	tally   *RollupInput
	found   map[string]*PlatformResource
	present int64
	series  map[seriesKey]*running
	changes []Change
	// behind are the series whose roll-ups are not up to date. fresh are the series of a first roll-up, which have no earlier roll-ups.
	behind []*running
	fresh  []Series
	done   bool
}

// seriesKey identifies a series.
type seriesKey struct {
	resource string
	owner    Owner
}

func (i *Item) key() seriesKey { return seriesKey{i.Resource, i.Owner} }

func newRolling(t *RollupInput, found map[string]*PlatformResource) *rolling {
	r := &rolling{tally: t, found: found, present: t.present(), changes: t.Changes, series: make(map[seriesKey]*running, len(t.Series))}
	if t.Until.IsZero() { // running resources are counted from now on
		for _, x := range t.Resources {
			if rate := x.Amounts[Burn]; rate > 0 {
				r.fresh = append(r.fresh, Series{Item: NewItem(x.ID, x.Kind, x.Owner, x.Metadata), Rate: rate, At: r.present})
			}
		}
	}
	for _, s := range t.Series {
		r.series[s.Item.key()] = &running{Series: s}
	}
	return r
}

// present returns the latest time in the input, because clocks can step back.
func (t *RollupInput) present() int64 {
	latest := max(t.Now.UnixMilli(), t.Until.UnixMilli())
	for _, c := range t.Changes {
		latest = max(latest, c.At.UnixMilli())
	}
	return latest
}

// next returns the next posting. It sets done with the last one.
func (r *rolling) next() *Posting {
	p := &Posting{Version: r.tally.Version, Until: r.tally.Until}
	switch {
	case r.tally.Until.IsZero():
		n := min(rollSize, len(r.fresh))
		p.Series, r.fresh = r.fresh[:n], r.fresh[n:]
		if r.done = len(r.fresh) == 0; r.done {
			p.Changes = len(r.changes)
		}
	case len(r.changes) > 0:
		r.follow(p)
	default:
		r.advance(p)
	}
	if r.done {
		p.Until = time.UnixMilli(r.present)
	}
	r.tally.Version++
	return p
}

// follow processes changes up to the first one that does not fit into the posting. Changes that one call has made to an item stay
// together.
func (r *rolling) follow(p *Posting) {
	for p.Changes < len(r.changes) && (p.Changes < rollSize || r.changes[p.Changes].Item.sameAs(&r.changes[p.Changes-1].Item)) {
		p.Changes++
	}
	touched := make([]*running, 0, p.Changes)
	for _, c := range r.changes[:p.Changes] {
		if c.Once != 0 {
			p.Rollups = append(p.Rollups, Rollup{Start: Hourly.Start(c.At), Item: c.Item, Micro: c.Once})
			continue
		}
		s := r.series[c.Item.key()]
		if s == nil {
			s = &running{Series: Series{Item: c.Item, At: c.At.UnixMilli()}}
			r.series[c.Item.key()] = s
		}
		if s.steps == nil {
			s.steps = []step{{s.At, s.Rate}}
			touched = append(touched, s)
		}
		p.Rollups = append(p.Rollups, s.late(&c)...)
		s.Rate += c.Rate
		s.steps = append(s.steps, step{max(s.At, c.At.UnixMilli()), c.Rate})
	}
	until := r.present
	if r.changes = r.changes[p.Changes:]; len(r.changes) > 0 {
		until = r.changes[0].At.UnixMilli()
	}
	for _, s := range touched {
		r.roll(p, s, max(until, s.latest()))
	}
}

// advance rolls up the series that have not changed.
func (r *rolling) advance(p *Posting) {
	if r.behind == nil {
		for _, s := range r.series {
			if s.At < r.present && s.Rate != 0 {
				r.behind = append(r.behind, s)
			}
		}
	}
	for len(r.behind) > 0 && len(p.Series) < rollSize && len(p.Rollups) < rollSize {
		s := r.behind[0]
		until := min(r.present, s.At+rollHours*hour)
		s.steps = []step{{s.At, s.Rate}}
		if r.roll(p, s, until); until == r.present {
			r.behind = r.behind[1:]
		}
	}
	r.done = len(r.behind) == 0
}

// roll rolls up a series until a time.
func (r *rolling) roll(p *Posting, s *running, until int64) {
	if f := r.found[s.Item.Resource]; f != nil {
		s.Item.learn(f)
	}
	p.Rollups = append(p.Rollups, s.accrue(until)...)
	s.At, s.steps = until, nil
	if n := len(p.Series); n > 0 && p.Series[n-1].Item.sameAs(&s.Item) {
		p.Series[n-1] = s.Series
		return
	}
	p.Series = append(p.Series, s.Series)
}

// running is a series with the changes of its rate; the first change is from 0.
type running struct {
	Series

	steps []step
}

type step struct{ at, rate int64 }

// latest returns when the latest change takes effect.
func (r *running) latest() int64 {
	at := r.At
	for _, s := range r.steps {
		at = max(at, s.at)
	}
	return at
}

// late returns the cost of a change that took effect before the time the series is rolled up to. A cost that is subtracted has its
// original rate, and begins with the carry that the series had at the time of the change.
func (r *running) late(c *Change) []Rollup {
	at, sign := c.At.UnixMilli(), int64(1)
	if c.Rate < 0 {
		_, since := cost(-c.Rate, r.At-at, 0)
		r.Carry, sign = (r.Carry-since+hour)%hour, -1
	}
	part := running{Series: Series{Item: r.Item, Carry: r.Carry}, steps: []step{{at, sign * c.Rate}}}
	out := part.accrue(r.At)
	for i := range out {
		out[i].Micro *= sign
	}
	if c.Rate > 0 {
		r.Carry = part.Carry
	}
	return out
}

// accrue returns the cost of the series up to a time, by hour and rate.
func (r *running) accrue(until int64) []Rollup {
	slices.SortStableFunc(r.steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	var out []Rollup
	rate := int64(0)
	for i, s := range r.steps {
		end := until
		if i+1 < len(r.steps) {
			end = min(end, r.steps[i+1].at)
		}
		rate += s.rate
		for from := s.at; from < end; {
			start := from - from%hour
			to := min(end, start+hour)
			micro, rest := cost(rate, to-from, r.Carry)
			r.Carry = rest
			if n := len(out); n > 0 && out[n-1].Start.UnixMilli() == start && out[n-1].Item.Rate == rate {
				out[n-1].Micro += micro
			} else {
				item := r.Item
				item.Terms = item.at(rate)
				out = append(out, Rollup{Start: time.UnixMilli(start).UTC(), Item: item, Micro: micro})
			}
			from = to
		}
	}
	return slices.DeleteFunc(out, func(r Rollup) bool { return r.Micro == 0 })
}
