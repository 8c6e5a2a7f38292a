package ratelimit

import (
	"context"
	"hash/maphash"
	"runtime"
	"sync"
	"time"
)

// lanes is the number of independent queues. Calls of one name share one.
const lanes = 64

// Group sends calls of one type that wait at the same instant in one exchange: group commit, as databases do it.
//
// It has no goroutine of its own. A caller that finds a free flight leads: it yields to callers that can run, takes the queued calls, its
// own included, makes one exchange and wakes the others; then it passes the flight on to a caller that has queued meanwhile, or gives it
// back. So a lone caller never waits for others, and a crowd forms groups as large as exchanges are slow and processors are busy.
//
// A Group is safe for concurrent use.
type Group[T any] struct {
	exchange       func(ctx context.Context, calls []*T)
	flights, batch int
	seed           maphash.Seed
	lanes          [lanes]lane[T]
	seats, groups  sync.Pool
}

// NewGroup returns a Group whose exchanges are made by exchange, with the context of one of
// the calls, which are not kept: at most so many flights at once in a lane, each with at
// most batch calls.
func NewGroup[T any](flights, batch int, exchange func(ctx context.Context, calls []*T)) *Group[T] {
	return &Group[T]{
		exchange: exchange, flights: flights, batch: batch, seed: maphash.MakeSeed(),
		seats:  sync.Pool{New: func() any { return &waiter[T]{signal: make(chan signal, 2)} }},
		groups: sync.Pool{New: func() any { return &exchangeCalls[T]{} }},
	}
}

// lane is one queue of calls and the number of exchanges serving it.
type lane[T any] struct {
	mu       sync.Mutex
	queue    []*waiter[T]
	inFlight int
}

// waiter is that of one call.
type waiter[T any] struct {
	call *T
	name string
	// leads is set, under the lane's lock, from the moment the caller is told to
	// lead until it has done so.
	leads bool
	// signal has room for the two things a waiting caller can be told.
	signal chan signal
}

type signal int

const (
	landed signal = iota
	lead
)

// exchangeCalls are those of one exchange.
type exchangeCalls[T any] struct {
	seats []*waiter[T]
	calls []*T
}

// GroupContext returns the context of an exchange for calls, which does not end with ctx, but at the latest of the deadlines of the
// calls. The zero time is none.
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

// Do takes a call along with others of the same name, and returns when its exchange has
// been made. It does not end with ctx.
func (g *Group[T]) Do(ctx context.Context, name string, call *T) {
	s := g.seats.Get().(*waiter[T])
	s.call, s.name, s.leads = call, name, false
	g.fly(ctx, s)
	s.call = nil
	g.seats.Put(s)
}

func (g *Group[T]) fly(ctx context.Context, s *waiter[T]) {
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
		if leading && g.carry(ctx, l, s) {
			return
		}
		if <-s.signal == landed {
			return
		}
		leading = true
	}
}

// carry makes one exchange for l and reports whether own was part of it. It may
// not have been: a lane serves several names, and another leader may have taken
// own along while it was being woken.
func (g *Group[T]) carry(ctx context.Context, l *lane[T], own *waiter[T]) bool {
	runtime.Gosched() // those that run now may queue up
	t := g.groups.Get().(*exchangeCalls[T])
	l.mu.Lock()
	l.take(t, g.batch)
	l.mu.Unlock()
	if len(t.calls) > 0 {
		g.exchange(ctx, t.calls)
	}
	l.mu.Lock()
	own.leads = false
	l.passOn(g.flights)
	l.mu.Unlock()
	aboard := false
	for _, s := range t.seats {
		if s == own {
			aboard = true
		} else {
			s.signal <- landed
		}
	}
	clear(t.seats)
	clear(t.calls)
	t.seats, t.calls = t.seats[:0], t.calls[:0]
	g.groups.Put(t)
	return aboard
}

// take moves the calls that can travel with the first one from the queue to t.
func (l *lane[T]) take(t *exchangeCalls[T], most int) {
	if len(l.queue) == 0 {
		return
	}
	name := l.queue[0].name
	stay := l.queue[:0]
	for _, s := range l.queue {
		if s.name == name && len(t.seats) < most {
			t.seats, t.calls = append(t.seats, s), append(t.calls, s.call)
		} else {
			stay = append(stay, s)
		}
	}
	clear(l.queue[len(stay):])
	l.queue = stay
}

// passOn ends a flight and lets waiting callers use free flights.
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

// Queued returns the number of calls that wait for an exchange.
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
