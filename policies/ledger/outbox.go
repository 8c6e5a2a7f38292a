package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Outbox is the [Store] for the calls of one gateway. It tracks the holds that the gateway has reserved, or tried to reserve, until they
// are settled. A settlement that the store does not accept stays queued and is retried; see [Outbox.Run]. Outbox is safe for concurrent
// use.
type Outbox struct {
	*Deps
	Store

	kicks kicks
	wake  chan struct{}

	mu     sync.Mutex // guards the fields below
	boxes  map[string]*box
	queued int
}

// box is the outbox of one organisation.
type box struct {
	turn sync.Mutex // held while the queue is delivered or the holds are checked

	hand  map[string]bool // unsettled holds, true once the store has confirmed the hold
	queue []*queued       // oldest first
	keys  map[string]bool
	// gone holds the IDs that were removed from held or from the queue while the store is being read; nil at other times.
	gone map[string]bool
	// doubt is set if the store may contain holds that it should not contain. lost is the latest time when such a hold can have been added.
	// missed is set if a settlement was dropped.
	doubt, missed bool
	lost          time.Time
	seen          HoldStatus
}

// queued is a settlement that waits for the store.
type queued struct {
	Settlement

	since time.Time
}

// maxQueued limits the number of queued settlements whose holds may be unknown to the store. Settlements of holds known to the store
// are always queued: there are only as many as calls were in progress when the store became unavailable.
const maxQueued = 10_000

// of returns the box of an organisation. The caller holds mu.
func (o *Outbox) of(org string) *box {
	b := o.boxes[org]
	if b == nil {
		b = &box{hand: make(map[string]bool), keys: make(map[string]bool)}
		o.boxes[org] = b
	}
	return b
}

// has reports whether a hold is unsettled now, or was when the read of the store began.
func (b *box) has(hold string) bool {
	_, held := b.hand[hold]
	return held || b.gone[hold] || slices.ContainsFunc(b.queue, func(s *queued) bool { return s.Hold == hold })
}

// drop removes a hold from the unsettled ones.
func (b *box) drop(hold string) {
	delete(b.hand, hold)
	if b.gone != nil {
		b.gone[hold] = true
	}
}

// Reserve implements Store. It also tracks a hold whose reservation failed, because the store may contain it. It repeats a refused
// reservation if queued settlements can free room.
func (o *Outbox) Reserve(ctx context.Context, org string, r *Reservation) (Outcome, error) {
	r.Holder = o.Self
	o.mu.Lock()
	b := o.of(org)
	if _, known := b.hand[r.Hold]; !known {
		b.hand[r.Hold] = false
	}
	waiting := len(b.queue) > 0
	o.mu.Unlock()
	out, err := o.Store.Reserve(ctx, org, r)
	if err == nil && out.Status == Refused && waiting && o.flush(ctx, org) == nil {
		out, err = o.Store.Reserve(ctx, org, r)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err != nil:
		o.fail(b)
	case out.Status == Admitted:
		b.hand[r.Hold] = true
	default:
		b.drop(r.Hold)
	}
	return out, err
}

// Settle implements Store. It queues a settlement that fails with ErrUnavailable, if there is room.
func (o *Outbox) Settle(ctx context.Context, org string, s *Settlement) error {
	o.mu.Lock()
	b := o.of(org)
	waiting := len(b.queue) > 0
	o.mu.Unlock()
	if waiting && b.turn.TryLock() {
		waiting = o.deliver(ctx, org, b) != nil
		b.turn.Unlock()
	}
	err := fmt.Errorf("settle: %w: earlier settlements are still queued", ErrUnavailable)
	if !waiting {
		if err = o.Store.Settle(ctx, org, s); errors.Is(err, ErrUnavailable) && ctx.Err() == nil {
			err = o.Store.Settle(ctx, org, s)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if errors.Is(err, ErrUnavailable) {
		o.fail(b)
		o.enqueue(ctx, org, b, s)
	}
	b.drop(s.Hold)
	return err
}

// fail records that the store may contain holds that it should not. The caller holds mu.
func (o *Outbox) fail(b *box) {
	b.lost = o.Now()
	o.doubt(b)
}

// doubt schedules a check of the holds in the store. The caller holds mu.
func (o *Outbox) doubt(b *box) {
	b.doubt = true
	select {
	case o.wake <- struct{}{}:
	default: // woken already
	}
}

// enqueue queues a settlement. The removal of a resource replaces other settlements of that resource. If the queue is full, enqueue
// drops a settlement whose hold may be unknown to the store: the hold is released when the store answers again, and the next pass finds
// the resource. The caller holds mu.
func (o *Outbox) enqueue(ctx context.Context, org string, b *box, s *Settlement) {
	b.missed = true
	known := b.hand[s.Hold]
	key := s.key(known)
	switch {
	case b.keys[key]:
		return
	case !known && o.queued >= maxQueued:
		o.Logger.WarnContext(ctx, "dropped a settlement because the queue is full", "org", org, "hold", s.Hold, "resource", s.Resource)
		return
	case len(b.queue) == 0:
		o.Logger.WarnContext(ctx, "ledger store is not accepting settlements, queueing them", "org", org)
	}
	b.queue, b.keys[key] = append(b.queue, &queued{*s, o.Now()}), true
	o.queued++
}

// key returns the same value for settlements that replace each other. If the store may not have the hold, the only information to
// deliver is that the resource is gone.
func (s *Settlement) key(known bool) string {
	switch {
	case s.End == Open:
		return "open " + s.Hold
	case s.Gone && !known:
		return "gone " + s.Resource
	}
	return "end " + s.Hold
}
