package ratelimit

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"
	"time"
)

// Group commit: calls that wait at the same instant go to the store in one
// exchange. There is no goroutine of its own. A caller that finds a free flight
// leads: it takes what is queued, its own call included, carries it to the store
// and hands out the answers; then it passes the flight on to a caller that has
// queued up meanwhile, or gives it back. A lone caller therefore never waits for
// company, and a crowd forms groups as large as the store is slow.

// lanes is the number of independent queues. Organisations of one group share
// one, so a store on a single node sees a single queue.
const lanes = 64

// commit is the group commit of all calls to one store.
type commit struct {
	store   Store
	config  CommitConfig
	timeout time.Duration
	tick    func() tick
	// done is told how each exchange went.
	done    func(ctx context.Context, calls int, took time.Duration, err error)
	seed    maphash.Seed
	lanes   [lanes]lane
	flights sync.Pool
	batches sync.Pool
}

// lane is one queue of calls and the number of exchanges serving it.
type lane struct {
	mu     sync.Mutex
	queue  []*flight
	flying int
}

// flight is one call on its way to the store and back.
type flight struct {
	op    Op
	group string
	// leads is set, under the lane's lock, from the moment the flight is told to
	// lead until it has done so.
	leads bool
	// signal has room for the two things a waiting caller can be told.
	signal chan signal

	// The answer, valid once landed.
	ans answer
	err error

	scopes [MaxScopes]Scope
	after  [MaxScopes]State
	draws  [MaxScopes]Draw
	// drawn has, for each scope, what the call brings along.
	drawn [MaxScopes]drawn
	// back has, for each scope of a refused call, [account.back].
	back [MaxScopes][Windows]time.Duration
}

type signal int

const (
	landed signal = iota
	lead
)

// batch is the scratch space of one exchange.
type batch struct {
	flights []*flight
	ops     []Op
	// opOf is the operation each flight is part of, rank how many flights before
	// it are part of the same.
	opOf []int
	rank []int64
}

func newCommit(store Store, c Config, now func() tick, done func(context.Context, int, time.Duration, error)) *commit {
	return &commit{
		store: store, config: c.Commit, timeout: c.Timeout, tick: now, done: done, seed: maphash.MakeSeed(),
		flights: sync.Pool{New: func() any { return &flight{signal: make(chan signal, 2)} }},
		batches: sync.Pool{New: func() any { return &batch{} }},
	}
}

// get returns a flight for k. put takes it back once its answer has been read.
func (c *commit) get(k *call) *flight {
	f := c.flights.Get().(*flight)
	f.op = Op{
		Org: k.org, Scopes: append(f.scopes[:0], k.scopes()...), Calls: 1, Cost: k.cost, After: f.after[:0],
	}
	for i := range k.n {
		f.drawn[i], f.back[i] = drawn{}, [Windows]time.Duration{}
	}
	f.group, f.leads, f.err = c.store.Group(k.org), false, nil
	return f
}

func (c *commit) put(f *flight) { c.flights.Put(f) }

// fly brings f to the store and back; the outcome is in f.
func (c *commit) fly(ctx context.Context, f *flight) {
	l := &c.lanes[maphash.String(c.seed, f.group)%lanes]
	l.mu.Lock()
	l.queue = append(l.queue, f)
	if l.flying < c.config.Flights {
		l.flying++
		f.leads = true
	}
	leading := f.leads
	l.mu.Unlock()
	for {
		if leading && c.carry(ctx, l, f) {
			return
		}
		if <-f.signal == landed {
			return
		}
		leading = true
	}
}

// carry makes one exchange for l and reports whether own was part of it. It may
// not have been: a lane serves several groups, and another leader may have taken
// own along while it was being woken.
func (c *commit) carry(ctx context.Context, l *lane, own *flight) bool {
	b := c.batches.Get().(*batch)
	l.mu.Lock()
	l.board(b, c.config.Batch)
	l.mu.Unlock()
	if len(b.flights) > 0 {
		c.exchange(ctx, b)
	}
	l.mu.Lock()
	own.leads = false
	l.passOn(c.config.Flights)
	l.mu.Unlock()
	aboard := false
	for _, f := range b.flights {
		if f == own {
			aboard = true
		} else {
			f.signal <- landed
		}
	}
	b.reset()
	c.batches.Put(b)
	return aboard
}

// board moves the flights that can travel with the first one from the queue to b.
func (l *lane) board(b *batch, most int) {
	if len(l.queue) == 0 {
		return
	}
	group := l.queue[0].group
	stay := l.queue[:0]
	for _, f := range l.queue {
		if f.group == group && len(b.flights) < most {
			b.flights = append(b.flights, f)
		} else {
			stay = append(stay, f)
		}
	}
	clear(l.queue[len(stay):])
	l.queue = stay
}

// passOn ends a flight and lets waiting callers use what is free.
func (l *lane) passOn(flights int) {
	l.flying--
	for _, f := range l.queue {
		if l.flying >= flights {
			return
		}
		if !f.leads {
			f.leads = true
			l.flying++
			f.signal <- lead
		}
	}
}

// exchange carries b to the store. The callers' own cancellation does not count:
// what has been sent will be charged, so its answer is wanted.
func (c *commit) exchange(ctx context.Context, b *batch) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
	defer cancel()
	b.merge()
	sent := c.tick()
	now, err := c.store.Apply(ctx, b.ops)
	ans := answer{now: now, sent: sent, got: c.tick()}
	c.done(ctx, len(b.flights), ans.got-ans.sent, err)
	// Backwards, because an operation's result lies in the first of its flights.
	for i, f := range slices.Backward(b.flights) {
		f.ans, f.err = ans, err
		if err == nil {
			b.answer(i)
		}
	}
}

// look is how many operations back merge looks for an identical one.
const look = 8

// merge turns the flights into operations, identical calls into one.
func (b *batch) merge() {
	for _, f := range b.flights {
		op := len(b.ops)
		for i := op - 1; i >= max(0, op-look); i-- {
			if sameCall(&b.ops[i], &f.op) {
				op = i
				break
			}
		}
		if op == len(b.ops) {
			b.ops = append(b.ops, f.op)
		} else {
			b.ops[op].Calls++
		}
		b.opOf = append(b.opOf, op)
		b.rank = append(b.rank, b.ops[op].Calls-1)
	}
}

func sameCall(a, b *Op) bool {
	return a.Cost == b.Cost && len(a.Draws) == 0 && len(b.Draws) == 0 &&
		a.Org == b.Org && slices.Equal(a.Scopes, b.Scopes)
}

// answer gives flight i its part of its operation's result: the first calls are
// the ones admitted, and each sees the state just after itself.
func (b *batch) answer(i int) {
	op, f, rank := &b.ops[b.opOf[i]], b.flights[i], b.rank[i]
	after, admitted := op.After, op.Admitted
	f.op.Admitted = 0
	later := int64(0)
	if rank < admitted {
		f.op.Admitted = 1
		later = admitted - rank - 1
	}
	f.op.After = append(f.after[:0], after...)
	if later == 0 {
		return
	}
	for s := range f.op.After {
		for w := range Windows {
			f.op.After[s].Count[w] -= later * op.Units(s)
		}
	}
}

func (b *batch) reset() {
	clear(b.flights)
	clear(b.ops)
	b.flights, b.ops, b.opOf, b.rank = b.flights[:0], b.ops[:0], b.opOf[:0], b.rank[:0]
}
