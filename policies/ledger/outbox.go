package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Outbox is the [Store] of one gateway's calls. It knows which holds the gateway has
// in hand: those it has reserved, or tried to, and not settled. A settlement that the
// store does not take stays queued until it does; see [Outbox.Run]. It is safe for
// concurrent use.
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
	turn sync.Mutex // held while the queue is delivered, or the holds are looked at

	hand  map[string]heldState
	queue []*queued // oldest first
	keys  map[string]bool
	// gone are holds that left the hand or the queue while the store is read; nil at
	// other times.
	gone map[string]bool
	// doubt says that the store may have holds that it should not have, since lost at
	// the latest; missed that it was not told all.
	doubt, missed bool
	lost          time.Time
	seen          HoldStatus
}

// queued is a settlement that waits for the store.
type queued struct {
	Settlement

	since time.Time
}

// heldState is the state of a hold in hand.
type heldState struct {
	// known says that the store has answered that it has the hold.
	known bool
}

// maxQueued bounds how many settlements are queued whose holds the store may never
// have heard of. Those of holds that it has are as few as the calls that were under
// way when it was lost, and are always queued.
const maxQueued = 10_000

// of returns the box of an organisation, with mu held.
func (o *Outbox) of(org string) *box {
	b := o.boxes[org]
	if b == nil {
		b = &box{hand: make(map[string]heldState), keys: make(map[string]bool)}
		o.boxes[org] = b
	}
	return b
}

// has reports whether a hold is in hand, or was when the store began to be read.
func (b *box) has(hold string) bool {
	_, held := b.hand[hold]
	return held || b.gone[hold] || slices.ContainsFunc(b.queue, func(s *queued) bool { return s.Hold == hold })
}

// drop takes a hold out of the hand.
func (b *box) drop(hold string) {
	delete(b.hand, hold)
	if b.gone != nil {
		b.gone[hold] = true
	}
}

// Reserve implements Store. A hold whose reservation failed is in hand, too: the store
// may have it. A refusal is asked for again if queued settlements can make room.
func (o *Outbox) Reserve(ctx context.Context, org string, r *Reservation) (Outcome, error) {
	r.Holder = o.Self
	o.mu.Lock()
	b := o.of(org)
	if _, known := b.hand[r.Hold]; !known {
		b.hand[r.Hold] = heldState{}
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
		b.hand[r.Hold] = heldState{known: true}
	default:
		b.drop(r.Hold)
	}
	return out, err
}

// Settle implements Store. A settlement that comes back with ErrUnavailable is queued,
// if there is room.
func (o *Outbox) Settle(ctx context.Context, org string, s *Settlement) error {
	o.mu.Lock()
	b := o.of(org)
	waiting := len(b.queue) > 0
	o.mu.Unlock()
	if waiting && b.turn.TryLock() {
		waiting = o.deliver(ctx, org, b) != nil
		b.turn.Unlock()
	}
	err := fmt.Errorf("settle: %w: earlier settlements are queued", ErrUnavailable)
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

// fail notes that the store may have holds that it should not have. The caller holds
// mu.
func (o *Outbox) fail(b *box) {
	b.lost = o.Now()
	o.doubt(b)
}

// doubt has the holds in the store looked at. The caller holds mu.
func (o *Outbox) doubt(b *box) {
	b.doubt = true
	select {
	case o.wake <- struct{}{}:
	default: // it is awake
	}
}

// enqueue queues a settlement. The removal of a resource takes the place of others of
// it; a settlement that the store may never have heard of is dropped when too much is queued: its
// hold is released when the store answers again, and the next pass finds out about its
// resource. The caller holds mu.
func (o *Outbox) enqueue(ctx context.Context, org string, b *box, s *Settlement) {
	b.missed = true
	known := b.hand[s.Hold].known
	key := s.key(known)
	switch {
	case b.keys[key]:
		return
	case !known && o.queued >= maxQueued:
		o.Logger.WarnContext(ctx, "a settlement was dropped: too many are queued", "org", org, "hold", s.Hold, "resource", s.Resource)
		return
	case len(b.queue) == 0:
		o.Logger.WarnContext(ctx, "settlements are queued: the ledger's store does not take them", "org", org)
	}
	b.queue, b.keys[key] = append(b.queue, &queued{*s, o.Now()}), true
	o.queued++
}

// key is the same for settlements of which one is enough. Of a hold that the store may
// not have, all there is to say is that its resource is gone.
func (s *Settlement) key(known bool) string {
	switch {
	case s.End == Open:
		return "open " + s.Hold
	case s.Gone && !known:
		return "gone " + s.Resource
	}
	return "end " + s.Hold
}
