package overload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Priority sets the order of requests. It is the purpose of a request, as far as that is
// known before its work.
type Priority uint8

// The priorities, first to last.
const (
	// ReducesCost ends or lessens costs: stops, deletes and cancellations.
	ReducesCost Priority = iota
	// Read changes nothing.
	Read
	// Change is everything else.
	Change
	priorities = iota
)

// Priorities lists them.
func Priorities() []Priority { return []Priority{ReducesCost, Read, Change} }

// String returns the name in metrics.
func (p Priority) String() string { return [priorities]string{"lower", "read", "change"}[p] }

// Reason is why a request was shed.
type Reason uint8

// The reasons.
const (
	// TimedOut means that it waited for as long as it may.
	TimedOut Reason = iota
	// QueueFull means that too many waited.
	QueueFull
	reasons = iota
)

// Reasons lists them.
func Reasons() []Reason { return []Reason{TimedOut, QueueFull} }

// String returns the name in metrics.
func (r Reason) String() string { return [reasons]string{"late", "full"}[r] }

// ErrShed is the end of a request that was not admitted.
var ErrShed = errors.New("overload: shed")

// Gate admits requests. It is safe for concurrent use. Use New.
type Gate struct {
	limits Config

	mu            sync.Mutex      // guards what follows, and the slots
	working, open [priorities]int // by priority
	orgs          map[string]*org
	active        int    // organisations with slots or waiting requests
	queued        []*org // those with waiting requests
	waiting       int
	shed          [priorities][reasons]int64
}

// org holds the slots and requests of an organisation. Organisations are those of the configuration, so
// there are only so many.
type org struct {
	working, open, waiting int
	queues                 [priorities]queue
}

// New returns a Gate. cfg must be valid.
func New(cfg Config) *Gate {
	return &Gate{limits: cfg.forProcess(), orgs: make(map[string]*org)}
}

// Slot is the place of one request. It begins as working. A nil Slot is that of a
// request which needs none.
type Slot struct {
	gate     *Gate
	org      *org
	priority Priority
	pauses   int // waits of the request that are under way at once
	released bool
}

// TryAcquire admits a request of an organisation if there is room for it, and nothing waits.
func (g *Gate) TryAcquire(name string, p Priority) (*Slot, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting > 0 || !g.hasRoom(p) {
		return nil, false
	}
	return g.acquire(g.org(name), p), true
}

// Acquire admits a request when it is its turn. The error is ErrShed, or that of ctx if
// that ended first.
func (g *Gate) Acquire(ctx context.Context, name string, p Priority) (*Slot, error) {
	w := &waiter{priority: p, since: time.Now(), done: make(chan struct{})}
	g.mu.Lock()
	g.enqueue(g.org(name), w)
	g.mu.Unlock()
	patience := time.NewTimer(g.limits.Wait)
	defer patience.Stop()
	var err error
	select {
	case <-w.done:
	case <-patience.C:
		err = ErrShed
	case <-ctx.Done():
		err = ctx.Err()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.queue != nil { // its turn may have come in the last moment
		g.withdraw(w)
		if errors.Is(err, ErrShed) {
			g.shed[p][TimedOut]++
		}
		return nil, fmt.Errorf("overload: %w", err)
	}
	if w.slot == nil {
		return nil, ErrShed
	}
	return w.slot, nil
}

// Pause says that the request waits for something outside the gateway. Each Rest is
// ended by a Work; of a request in parts, the last one counts.
func (s *Slot) Pause() {
	if s == nil {
		return
	}
	g := s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.pauses++; s.pauses == 1 && !s.released {
		s.org.working--
		g.working[s.priority]--
		g.dispatch()
	}
}

// Resume ends a Rest. It never waits.
func (s *Slot) Resume() {
	if s == nil {
		return
	}
	g := s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.pauses--; s.pauses == 0 && !s.released {
		s.org.working++
		g.working[s.priority]++
	}
}

// Release gives the slot back. Only the first one counts.
func (s *Slot) Release() {
	if s == nil {
		return
	}
	g := s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.released {
		return
	}
	s.released = true
	s.org.open--
	g.open[s.priority]--
	if s.pauses == 0 {
		s.org.working--
		g.working[s.priority]--
	}
	g.countIdle(s.org)
	g.dispatch()
}

// Stats are the figures of a Gate.
type Stats struct {
	// Limits are the bounds, none of them 0 because it was left out.
	Limits        Config
	Working, Open int
	Waiting       [priorities]int
	// Shed counts requests that were not admitted, since the beginning.
	Shed [priorities][reasons]int64
}

// Stats returns the state of this moment.
func (g *Gate) Stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := Stats{Limits: g.limits, Working: sum(g.working[:]), Open: sum(g.open[:]), Shed: g.shed}
	for _, o := range g.queued {
		for p := range o.queues {
			s.Waiting[p] += o.queues[p].Len()
		}
	}
	return s
}

// org returns the slots and requests of an organisation. g.mu is held.
func (g *Gate) org(name string) *org {
	o, ok := g.orgs[name]
	if !ok {
		o = new(org)
		g.orgs[name] = o
	}
	return o
}

// hasRoom reports whether a request of a priority may be admitted. g.mu is held.
func (g *Gate) hasRoom(p Priority) bool {
	for q := range p + 1 {
		if sum(g.working[q:]) >= part(g.limits.Working, q) || sum(g.open[q:]) >= part(g.limits.Open, q) {
			return false
		}
	}
	return true
}

// part is what requests of a priority and those behind it may have of n slots
// together: changes eight tenths, changes and reads nine.
func part(n int, p Priority) int { return n - n*int(p)/10 }

func sum(counts []int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// acquire gives an organisation a slot. g.mu is held.
func (g *Gate) acquire(o *org, p Priority) *Slot {
	if o.open+o.waiting == 0 {
		g.active++
	}
	o.working++
	o.open++
	g.working[p]++
	g.open[p]++
	return &Slot{gate: g, org: o, priority: p}
}

// countIdle counts an organisation out that has nothing any more. g.mu is held.
func (g *Gate) countIdle(o *org) {
	if o.open+o.waiting == 0 {
		g.active--
	}
}
