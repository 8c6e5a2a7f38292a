package overload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Priority is the priority of a request, derived from its purpose.
type Priority uint8

// Priorities, highest first.
const (
	// ReducesCost is for requests that end or reduce costs: stops, deletes and cancellations.
	ReducesCost Priority = iota
	// Read is for requests that change nothing.
	Read
	// Change is for all other requests.
	Change
	priorities = iota
)

// Priorities returns all priorities, highest first.
func Priorities() []Priority { return []Priority{ReducesCost, Read, Change} }

// String returns the name used in metrics.
func (p Priority) String() string { return [priorities]string{"lower", "read", "change"}[p] }

// Reason is the reason for refusing a request.
type Reason uint8

// Reasons for refusing a request.
const (
	// timedOut means that the request waited in the queue for the maximum time.
	timedOut Reason = iota
	// queueFull means that the queue was full.
	queueFull
	reasons = iota
)

// Reasons returns all reasons.
func Reasons() []Reason { return []Reason{timedOut, queueFull} }

// String returns the name used in metrics.
func (r Reason) String() string { return [reasons]string{"late", "full"}[r] }

// ErrShed is returned for a request that was refused because of overload.
var ErrShed = errors.New("request refused because the gateway is overloaded")

// Gate limits how many requests are processed at the same time. It is safe for concurrent use. Use New to create a Gate.
type Gate struct {
	limits Config

	mu            sync.Mutex      // guards the fields below and all slots
	working, open [priorities]int // by priority
	orgs          map[string]*org
	active        int    // organisations with slots or queued requests
	queued        []*org // organisations with queued requests
	waiting       int
	shed          [priorities][reasons]int64
}

// org holds the slots and queued requests of an organisation. Only configured organisations occur, so their number is bounded.
type org struct {
	working, waiting int
	open             [priorities]int // by priority
	queues           [priorities]queue
}

// idle reports whether the organisation has neither slots nor queued requests.
func (o *org) idle() bool { return sum(o.open[:])+o.waiting == 0 }

// New returns a Gate with the given limits, which must be valid.
func New(cfg Config) *Gate {
	return &Gate{limits: cfg.forProcess(), orgs: make(map[string]*org)}
}

// Slot is the permission for one request to proceed. A new slot is working. The methods of a nil Slot do nothing.
type Slot struct {
	gate     *Gate
	org      *org
	priority Priority
	pauses   int // nested or concurrent pauses
	released bool
}

// TryAcquire takes a slot for a request of the organisation name without waiting. ok is false if no slot is free or if other requests are
// queued.
func (g *Gate) TryAcquire(name string, p Priority) (*Slot, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	o := g.org(name)
	if g.waiting > 0 || !g.hasRoom(o, p) {
		return nil, false
	}
	return g.acquire(o, p), true
}

// Acquire waits for a slot for a request with priority p. The parameter name is the ID of the request's organisation. The returned error
// wraps ErrShed if the gate refused the request, and ctx.Err() if ctx ended during the wait.
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
	if w.queue != nil { // otherwise it was admitted or refused at the last moment
		g.withdraw(w)
		if errors.Is(err, ErrShed) {
			g.shed[p][timedOut]++
		}
		return nil, fmt.Errorf("overload: %w", err)
	}
	if w.slot == nil {
		return nil, ErrShed
	}
	return w.slot, nil
}

// Pause marks the request as waiting for something outside the gateway, so that its slot no longer counts as working. Each Pause must be
// followed by a Resume. A slot with several pauses resumes when the last pause ends.
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

// Resume ends a Pause. It never blocks.
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

// Release gives the slot back to the Gate. Only the first call has an effect.
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
	s.org.open[s.priority]--
	g.open[s.priority]--
	if s.pauses == 0 {
		s.org.working--
		g.working[s.priority]--
	}
	g.countIdle(s.org)
	g.dispatch()
}

// Stats is a snapshot of a Gate.
type Stats struct {
	// Limits are the limits in force, with defaults filled in.
	Limits        Config
	Working, Open int
	Waiting       [priorities]int
	// Shed is the number of refused requests since New, by priority and reason.
	Shed [priorities][reasons]int64
}

// Stats returns the current state.
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

// org returns the entry of an organisation. g.mu must be held.
func (g *Gate) org(name string) *org {
	o, ok := g.orgs[name]
	if !ok {
		o = new(org)
		g.orgs[name] = o
	}
	return o
}

// mostPerFree is the number of open slots that an organisation may hold for each free slot. One organisation can thus hold nine tenths of
// the slots that its requests may use. The rest remains for other organisations if the platform does not respond and no slot becomes free.
const mostPerFree = 9

// hasRoom reports whether a request of an organisation may be admitted now. g.mu must be held.
func (g *Gate) hasRoom(o *org, p Priority) bool {
	for q := range p + 1 {
		free := part(g.limits.Open, q) - sum(g.open[q:])
		if sum(g.working[q:]) >= part(g.limits.Working, q) || sum(o.open[q:]) > mostPerFree*free {
			return false
		}
	}
	return true
}

// part returns how many of n slots requests of the given and lower priorities may hold together: 80 % for changes, 90 % for reads and
// changes.
func part(n int, p Priority) int { return n - n*int(p)/10 }

func sum(counts []int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// acquire gives a slot to an organisation. g.mu must be held.
func (g *Gate) acquire(o *org, p Priority) *Slot {
	if o.idle() {
		g.active++
	}
	o.working++
	o.open[p]++
	g.working[p]++
	g.open[p]++
	return &Slot{gate: g, org: o, priority: p}
}

// countIdle updates the number of active organisations. g.mu must be held.
func (g *Gate) countIdle(o *org) {
	if o.idle() {
		g.active--
	}
}
