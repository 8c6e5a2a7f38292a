package ratelimit

import (
	"context"
	"hash/maphash"
	"runtime"
	"sync"
	"time"
)

// lanes is the number of queues with separate locks. Calls with the same name share a queue.
const lanes = 64

// Group combines concurrent calls of one type into batches, like the group commit of a database.
//
// A Group has no goroutine of its own. If fewer batches are in progress than allowed, the caller of Do becomes the leader: it yields to
// other runnable callers, takes the queued calls including its own, sends them as one batch, and wakes the other callers. Then it passes
// the leadership to a caller that has queued in the meantime, if there is one. A caller without concurrent callers therefore never waits,
// and batches grow with the duration of a batch and with the load of the processors.
//
// A Group is safe for concurrent use.
type Group[T any] struct {
	exchange       func(ctx context.Context, calls []*T)
	flights, batch int
	seed           maphash.Seed
	lanes          [lanes]lane[T]
	seats, groups  sync.Pool
}

// NewGroup returns a Group that calls exchange to send each batch of calls. All calls of a batch have the same name; see [Group.Do]. The
// parameter batch is the maximum number of calls in a batch, and flights is the maximum number of batches in progress for each name.
// exchange gets the context of one of the calls, and must not retain the slice calls.
func NewGroup[T any](flights, batch int, exchange func(ctx context.Context, calls []*T)) *Group[T] {
	return &Group[T]{
		exchange: exchange, flights: flights, batch: batch, seed: maphash.MakeSeed(),
		seats:  sync.Pool{New: func() any { return &waiter[T]{signal: make(chan signal, 2)} }},
		groups: sync.Pool{New: func() any { return &exchangeCalls[T]{} }},
	}
}

// lane is a queue of calls, with the number of batches in progress.
type lane[T any] struct {
	mu       sync.Mutex
	queue    []*waiter[T]
	inFlight int
}

// waiter is the queue entry of one call.
type waiter[T any] struct {
	call *T
	name string
	// leads is set, under the lane's lock, from the time the caller is chosen as leader until it has sent a batch.
	leads bool
	// signal has capacity for both signals that a waiting caller can receive.
	signal chan signal
}

type signal int

const (
	finished signal = iota
	lead
)

// exchangeCalls are the calls of one batch.
type exchangeCalls[T any] struct {
	seats []*waiter[T]
	calls []*T
}

// GroupContext returns the context for a batch of a [Group]. The context is not canceled with ctx. It ends at the latest deadline of the
// calls, or never if a call has a zero deadline.
func GroupContext[T any](ctx context.Context, calls []*T, deadline func(*T) time.Time) (context.Context, context.CancelFunc) {
	ctx = context.WithoutCancel(ctx)
	var latest time.Time
	for _, c := range calls {
		until := deadline(c)
		if until.IsZero() {
			return ctx, func() {}
		}
		if until.After(latest) {
			latest = until
		}
	}
	return context.WithDeadline(ctx, latest)
}

// Do makes a call, possibly in a batch with concurrent calls of the same name. It returns when the batch is finished, even if ctx is done
// earlier.
func (g *Group[T]) Do(ctx context.Context, name string, call *T) {
	s := g.seats.Get().(*waiter[T])
	s.call, s.name, s.leads = call, name, false
	g.join(ctx, s)
	s.call = nil
	g.seats.Put(s)
}

func (g *Group[T]) join(ctx context.Context, s *waiter[T]) {
	l := &g.lanes[maphash.String(g.seed, s.name)%lanes]
	l.mu.Lock()
	l.queue = append(l.queue, s)
	if l.inFlight < g.flights {
		l.inFlight++
		s.leads = true
	}
	leading := s.leads
	l.mu.Unlock()
	for {
		if leading && g.exchangeFor(ctx, l, s) {
			return
		}
		if <-s.signal == finished {
			return
		}
		leading = true
	}
}

// exchangeFor sends one batch from l, and reports whether the batch included own. It does not include own if own has a different name than
// the first queued call, or if another leader has taken own while this caller was being woken.
func (g *Group[T]) exchangeFor(ctx context.Context, l *lane[T], own *waiter[T]) bool {
	runtime.Gosched() // lets runnable callers queue their calls
	t := g.groups.Get().(*exchangeCalls[T])
	l.mu.Lock()
	l.dequeue(t, g.batch)
	l.mu.Unlock()
	if len(t.calls) > 0 {
		g.exchange(ctx, t.calls)
	}
	l.mu.Lock()
	own.leads = false
	l.passOn(g.flights)
	l.mu.Unlock()
	included := false
	for _, s := range t.seats {
		if s == own {
			included = true
		} else {
			s.signal <- finished
		}
	}
	clear(t.seats)
	clear(t.calls)
	t.seats, t.calls = t.seats[:0], t.calls[:0]
	g.groups.Put(t)
	return included
}

// dequeue moves the first call and the calls with the same name from the queue to t, at most limit calls.
func (l *lane[T]) dequeue(t *exchangeCalls[T], limit int) {
	if len(l.queue) == 0 {
		return
	}
	name := l.queue[0].name
	stay := l.queue[:0]
	for _, s := range l.queue {
		if s.name == name && len(t.seats) < limit {
			t.seats, t.calls = append(t.seats, s), append(t.calls, s.call)
		} else {
			stay = append(stay, s)
		}
	}
	clear(l.queue[len(stay):])
	l.queue = stay
}

// passOn ends a batch and lets waiting callers send the next ones.
func (l *lane[T]) passOn(flights int) {
	l.inFlight--
	for _, s := range l.queue {
		if l.inFlight >= flights {
			return
		}
		if !s.leads {
			s.leads = true
			l.inFlight++
			s.signal <- lead
		}
	}
}

// Queued returns the number of calls that wait to be sent.
func (g *Group[T]) Queued() int {
	n := 0
	for i := range g.lanes {
		l := &g.lanes[i]
		l.mu.Lock()
		n += len(l.queue)
		l.mu.Unlock()
	}
	return n
}
