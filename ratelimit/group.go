package ratelimit

import (
	"context"
	"slices"
	"sync"
	"time"
)

// commit combines concurrent calls to the store into shared round trips. Organisations of one group share a queue, so a store on a single
// node has a single queue.
type commit struct {
	*Group[flight]

	limiter *Limiter
	flights sync.Pool
	batches sync.Pool
}

// flight is one call to the store, with its result.
type flight struct {
	op Op

	// The result, valid after the round trip.
	ans answer
	err error

	scopes [MaxScopes]Scope
	after  [MaxScopes]State
	draws  [MaxScopes]Draw
	// drawn contains, for each scope, the units that the call contributes from leases.
	drawn [MaxScopes]drawn
	// back contains, for each scope of a refused call, [account.back].
	back [MaxScopes][Windows]time.Duration
}

// batch is the scratch space of one round trip.
type batch struct {
	flights []*flight
	ops     []Op
	// opOf is the operation of each flight, and rank the number of earlier flights that share the operation.
	opOf []int
	rank []int64
}

func newCommit(l *Limiter) *commit {
	g := &commit{
		limiter: l,
		flights: sync.Pool{New: func() any { return &flight{} }},
		batches: sync.Pool{New: func() any { return &batch{} }},
	}
	g.Group = NewGroup(l.config.Commit.MaxInFlight, l.config.Commit.MaxBatch, g.exchange)
	return g
}

// get returns a flight for k. The caller must return the flight with put after reading its result.
func (c *commit) get(k *call) *flight {
	f := c.flights.Get().(*flight)
	f.op = Op{
		Org: k.org, Scopes: append(f.scopes[:0], k.scopes()...), Calls: 1, Cost: k.cost, After: f.after[:0],
	}
	for i := range k.n {
		f.drawn[i], f.back[i] = drawn{}, [Windows]time.Duration{}
	}
	f.err = nil
	return f
}

func (c *commit) put(f *flight) { c.flights.Put(f) }

// exchange sends flights to the store. It ignores the cancellation of callers, because a call that was sent will be charged and its
// result is needed.
func (c *commit) exchange(ctx context.Context, flights []*flight) {
	l := c.limiter
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.config.Timeout)
	defer cancel()
	b := c.batches.Get().(*batch)
	b.flights = flights
	b.merge()
	ans, err := l.apply(ctx, b.ops, len(b.flights))
	// In reverse order, because the result of an operation is stored in its first flight.
	for i, f := range slices.Backward(b.flights) {
		f.ans, f.err = ans, err
		if err == nil {
			b.answer(i)
		}
	}
	b.reset()
	c.batches.Put(b)
}

// mergeLookback is the number of previous operations that merge compares with.
const mergeLookback = 8

// merge converts the flights to operations. Identical calls become one operation.
func (b *batch) merge() {
	for _, f := range b.flights {
		op := len(b.ops)
		for i := op - 1; i >= max(0, op-mergeLookback); i-- {
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

// answer gives flight i its part of the operation's result: the first calls are the admitted ones, and each call gets the state right after
// it.
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
	clear(b.ops)
	b.flights, b.ops, b.opOf, b.rank = nil, b.ops[:0], b.opOf[:0], b.rank[:0]
}
