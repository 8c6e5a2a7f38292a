package ratelimit

import (
	"errors"
	"slices"
	"sync/atomic"
)

// counters are the counters for [Counts]. They are plain atomics that are read on demand, because recording a metric takes longer than a
// decision.
type counters struct {
	// decisions counts decisions by class, source and outcome.
	decisions [2][len(sourceList)][2]atomic.Int64
	failed    [2]atomic.Int64
	calls     atomic.Int64
	carried   atomic.Int64
	errors    atomic.Int64
	restarts  atomic.Int64
}

// sourceList contains the sources in the order of the counters.
var sourceList = [...]Source{SourceNone, SourceRedis, SourceLease, SourceMemory, SourceLocal, SourceOpen}

func classIndex(c Class) int {
	if c == ClassRead {
		return 0
	}
	return 1
}

// decided counts one decision.
func (n *counters) decided(t *Take, d *Decision, err error) {
	class := classIndex(t.Class)
	if err != nil {
		if errors.Is(err, ErrUnavailable) {
			n.failed[class].Add(1)
		}
		return
	}
	outcome := 0
	if d.Allowed {
		outcome = 1
	}
	n.decisions[class][slices.Index(sourceList[:], d.Source)][outcome].Add(1)
}

// exchanged counts one round trip to the store that served the given number of calls.
func (n *counters) exchanged(calls int, err error) {
	n.calls.Add(1)
	n.carried.Add(int64(calls))
	switch {
	case errors.Is(err, ErrRestarted):
		n.restarts.Add(1)
	case err != nil:
		n.errors.Add(1)
	}
}

// DecisionCount is the number of decisions of one class that have the same source and outcome.
type DecisionCount struct {
	Class  Class
	Source Source
	// Outcome is "admitted", "refused" or "unavailable".
	Outcome string
	Count   int64
}

// Counts is a snapshot of the counters of a Limiter, for metrics.
type Counts struct {
	// Decisions has an entry for each combination of class, source and outcome that has occurred.
	Decisions []DecisionCount
	// Exchanges is the number of round trips to the store, and Calls the number of calls that they served. Restarts is the number of round
	// trips that failed because the store had restarted, and Failed the number of other failed round trips.
	Exchanges, Calls, Failed, Restarts int64
	// Down is set while the store is considered down, so that no calls are sent to it. See [Limiter.Down].
	Down bool
	// Gateways is the latest known number of gateways that share the store.
	Gateways int64
	// Scopes is the number of remembered scopes. Held is the number of leased permits of the current minute that are not spent yet.
	Scopes, Held int64
}

// Counts returns the counters since New was called.
func (l *Limiter) Counts() Counts {
	n := &l.counts
	c := Counts{
		Decisions: n.outcomes(), Exchanges: n.calls.Load(), Calls: n.carried.Load(), Failed: n.errors.Load(), Restarts: n.restarts.Load(),
		Down: l.breakers.anyOpen(), Gateways: l.live.Load(),
	}
	c.Scopes, c.Held = l.totals()
	return c
}

func (n *counters) outcomes() (all []DecisionCount) {
	add := func(count int64, class Class, source Source, outcome string) {
		if count > 0 {
			all = append(all, DecisionCount{class, source, outcome, count})
		}
	}
	for c, class := range [...]Class{ClassRead, ClassWrite} {
		for s, source := range sourceList {
			add(n.decisions[c][s][0].Load(), class, source, "refused")
			add(n.decisions[c][s][1].Load(), class, source, "admitted")
		}
		add(n.failed[c].Load(), class, SourceNone, "unavailable")
	}
	return all
}

// totals returns the number of scopes remembered and of permits held.
func (l *Limiter) totals() (known, held int64) {
	now := l.tick()
	l.book.each(func(a *account) bool {
		known++
		if a.runs(0, now) {
			held += a.held[0]
		}
		return true
	})
	return known, held
}
