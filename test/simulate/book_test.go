package simulate

import (
	"slices"
	"sync"
	"time"
)

// call is one call, as it was seen from outside.
type call struct {
	region, key, org int
	begin, end       time.Time
	admitted         bool
	// fits reports whether a counter without any distance would have admitted it.
	fits bool
}

// scope is a holder of a quota: a key, or an organisation.
type scope struct {
	org bool
	id  int
}

// book counts what happens. Its own count of what fits shares nothing with the limiter:
// it is told of every call as it begins.
type book struct {
	scale

	mu   sync.Mutex // guards what follows
	fits map[scope]map[int64]int64
	// within counts admitted calls by the minute in which they began and ended, over
	// those that ended in the next one: either may have been charged.
	within, over map[scope]map[int64]int64
	waits        [][]time.Duration // by region, of calls that were admitted
	possible     []int64           // by region
	admitted     []int64
	calls        int64
}

func newBook(s scale) *book {
	return &book{
		scale: s, fits: make(map[scope]map[int64]int64), within: make(map[scope]map[int64]int64), over: make(map[scope]map[int64]int64),
		waits: make([][]time.Duration, 3), possible: make([]int64, 3), admitted: make([]int64, 3),
	}
}

func (b *book) quota(s scope) int64 {
	if s.org {
		return b.org
	}
	return b.key
}

func (c *call) scopes() [2]scope { return [2]scope{{false, c.key}, {true, c.org}} }

func minute(t time.Time) int64 { return t.Unix() / 60 }

func count(m map[scope]map[int64]int64, s scope, minute int64) {
	if m[s] == nil {
		m[s] = make(map[int64]int64)
	}
	m[s][minute]++
}

// offered notes a call, and whether it fits.
func (b *book) offered(c *call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	c.fits = true
	for _, s := range c.scopes() {
		c.fits = c.fits && b.fits[s][minute(c.begin)] < b.quota(s)
	}
	if !c.fits {
		return
	}
	b.possible[c.region]++
	for _, s := range c.scopes() {
		count(b.fits, s, minute(c.begin))
	}
}

// answered notes what became of a call.
func (b *book) answered(c *call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !c.admitted {
		return
	}
	b.admitted[c.region]++
	b.waits[c.region] = append(b.waits[c.region], c.end.Sub(c.begin))
	of := b.within
	if minute(c.end) != minute(c.begin) {
		of = b.over
	}
	for _, s := range c.scopes() {
		count(of, s, minute(c.begin))
	}
}

// tooMany is how many admitted calls no quota has room for, at the best reading of those
// that were under way as a minute turned.
func (b *book) tooMany() (n int64) {
	all := make(map[scope]bool)
	for _, m := range []map[scope]map[int64]int64{b.within, b.over} {
		for s := range m {
			all[s] = true
		}
	}
	for s := range all {
		var minutes []int64
		for _, m := range []map[int64]int64{b.within[s], b.over[s]} {
			for minute := range m {
				minutes = append(minutes, minute, minute+1)
			}
		}
		slices.Sort(minutes)
		carried := int64(0) // from the minute before
		for _, minute := range slices.Compact(minutes) {
			must := b.within[s][minute] + carried
			n += max(0, must-b.quota(s))
			carried = max(0, b.over[s][minute]-max(0, b.quota(s)-must))
		}
		n += carried
	}
	return n
}

// result is what came of a strategy.
type result struct {
	name string
	// calls were made; a counter without distance admits possible of them; admitted were;
	// and tooMany of these had no room in their quotas.
	calls, possible, admitted, tooMany int64
	exchanges                          int64
	regions                            []regional
}

// regional is what came of it in a region.
type regional struct {
	name string
	// got is the admitted part of the calls that a counter without distance admits there.
	got float64
	// waited is the part of the admitted calls that waited for the store, p99 their wait.
	waited float64
	p99    time.Duration
}

// result sums up.
func (b *book) result(how strategy, regions []region) result {
	r := result{name: how.name, calls: b.calls, tooMany: b.tooMany()}
	for at, region := range regions {
		r.possible += b.possible[at]
		r.admitted += b.admitted[at]
		waits := b.waits[at]
		slices.Sort(waits)
		at := regional{name: region.name, got: float64(b.admitted[at]) / float64(max(1, b.possible[at]))}
		if len(waits) > 0 {
			first, _ := slices.BinarySearch(waits, 1)
			at.waited, at.p99 = float64(len(waits)-first)/float64(len(waits)), waits[len(waits)*99/100]
		}
		r.regions = append(r.regions, at)
	}
	return r
}

// lost is the refused part of the calls that a counter without distance admits.
func (r *result) lost() float64 { return 1 - float64(r.admitted)/float64(r.possible) }

// perCall is how often a store was asked for a call.
func (r *result) perCall() float64 { return float64(r.exchanges) / float64(r.calls) }

// fairness is Jain's index of the regions' shares of the calls that they could have had: 1 is the
// same for all, and 1/3 all for one.
func (r *result) fairness() float64 {
	var sum, squares float64
	for _, at := range r.regions {
		sum += at.got
		squares += at.got * at.got
	}
	return sum * sum / (float64(len(r.regions)) * squares)
}
