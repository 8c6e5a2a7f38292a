package ledger

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tollgate-dev/tollgate/config/panics"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// HoldStatus summarizes the latest check of an organisation's holds.
type HoldStatus struct {
	// InFlight is the age of the oldest hold whose call is in progress, and Open the age of the oldest hold whose outcome is unknown.
	InFlight, Open time.Duration
	// Overdue is the number of calls of this gateway that have exceeded the longest call duration without a settlement.
	Overdue int
	// Queued is the number of settlements waiting for the store.
	Queued int
}

const (
	// firstPause is the pause before the first retry after a store failure, and lastPause the longest pause.
	firstPause, lastPause = 100 * time.Millisecond, time.Second
	// latePause is the delay with which the store may still execute an earlier request after a failure.
	latePause = 2 * time.Second
	// deliverTime limits the duration of one delivery step, and deliverBatch its settlements. The first step sends a single settlement, to
	// find out whether the store accepts any.
	deliverTime, deliverBatch = 2 * time.Second, 128
)

// Run delivers queued settlements as soon as the store accepts them. After each failure and once per Interval it also releases holds of
// this gateway whose calls are no longer in progress. It returns when ctx is done.
func (o *Outbox) Run(ctx context.Context) error {
	regular := time.NewTicker(o.Interval)
	defer regular.Stop()
	var again <-chan time.Time
	pause := firstPause
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-regular.C:
			o.scheduleChecks()
		case <-o.wake:
			if again == nil {
				pause = firstPause
				again = time.After(pause)
			}
		case <-again:
			again = nil
			if o.Deliver(ctx) {
				pause = min(2*pause, lastPause)
				again = time.After(pause)
			}
		}
	}
}

// Drain delivers the queue until ctx is done. It returns the number of settlements left.
func (o *Outbox) Drain(ctx context.Context) (left int) {
	for {
		o.Deliver(ctx)
		o.mu.Lock()
		left = 0
		for _, b := range o.boxes {
			left += len(b.queue)
		}
		o.mu.Unlock()
		if left == 0 {
			return 0
		}
		select {
		case <-ctx.Done():
			return left
		case <-time.After(firstPause):
		}
	}
}

// scheduleChecks schedules a check of the holds of all organisations.
func (o *Outbox) scheduleChecks() {
	orgs := o.Gateway.Budgeted()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, org := range orgs {
		o.doubt(o.of(org))
	}
}

// Deliver delivers the queue once, and reports whether another attempt is needed.
func (o *Outbox) Deliver(ctx context.Context) (again bool) {
	o.mu.Lock()
	due := make(map[string]*box)
	for org, b := range o.boxes {
		if b.doubt {
			due[org] = b
		}
	}
	o.mu.Unlock()
	var work errgroup.Group
	for org, b := range due {
		work.Go(func() error { return panics.Catch(func() { o.restore(ctx, org, b) }) })
	}
	panics.Raise(work.Wait())
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, b := range due {
		again = again || b.doubt
	}
	return again
}

// Sweep delivers the queued changes of an organisation. It also releases reservations of this gateway that no call in progress uses.
func (o *Outbox) Sweep(ctx context.Context, org string) error {
	o.mu.Lock()
	b := o.of(org)
	o.mu.Unlock()
	b.turn.Lock()
	defer b.turn.Unlock()
	if err := o.deliver(ctx, org, b); err != nil {
		return err
	}
	return o.sweep(ctx, org, b)
}

// restore removes those holds of this gateway from the store that should not be there.
func (o *Outbox) restore(ctx context.Context, org string, b *box) {
	b.turn.Lock()
	defer b.turn.Unlock()
	began := o.Now()
	if o.deliver(ctx, org, b) != nil || o.sweep(ctx, org, b) != nil {
		return
	}
	o.mu.Lock()
	missed := b.missed && len(b.queue) == 0
	if missed {
		b.missed = false
	}
	b.doubt = len(b.queue) > 0 || began.Sub(b.lost) < latePause
	o.mu.Unlock()
	if missed {
		o.kicks.Kick(org)
	}
}

// flush delivers the queue of an organisation.
func (o *Outbox) flush(ctx context.Context, org string) error {
	o.mu.Lock()
	b := o.of(org)
	o.mu.Unlock()
	b.turn.Lock()
	defer b.turn.Unlock()
	return o.deliver(ctx, org, b)
}

// deliver delivers a queue and returns the errors of the settlements that were not accepted. The caller holds b.turn.
func (o *Outbox) deliver(ctx context.Context, org string, b *box) error {
	delivered := 0
	for batch := o.batch(b, 1); len(batch) > 0; batch = o.batch(b, deliverBatch) {
		if err := o.send(ctx, org, b, batch); err != nil {
			return err
		}
		delivered += len(batch)
	}
	if delivered > 0 {
		o.Logger.InfoContext(ctx, "queued settlements delivered", "org", org, "count", delivered)
	}
	return nil
}

// batch returns up to n of the oldest queued settlements whose order does not matter.
func (o *Outbox) batch(b *box, n int) []*queued {
	o.mu.Lock()
	defer o.mu.Unlock()
	about := make(map[string]bool)
	for i, s := range b.queue {
		if i == n || about[s.Hold] || s.NewID != "" && about[s.NewID] || s.Resource != "" && about["/"+s.Resource] {
			return slices.Clone(b.queue[:i])
		}
		about[s.Hold], about["/"+s.Resource] = true, true
		if s.NewID != "" {
			about[s.NewID] = true
		}
	}
	return slices.Clone(b.queue)
}

// current returns the settlement to send for a queue entry: if the resource was removed in the meantime, its commit becomes a removal.
func (o *Outbox) current(ctx context.Context, org string, q *queued) *Settlement {
	s := q.Settlement
	if s.End != Commit || s.Resource == "" || s.Gone || o.Now().Sub(q.since) < lag {
		return &s
	}
	if f, err := o.Platform.Get(ctx, org, operation.Kind(s.Kind), s.Resource); err == nil && f == nil {
		s.Gone, s.Amounts = true, Amounts{}
	}
	return &s
}

// send sends settlements in parallel, removes the accepted ones from the queue, and returns the errors of the others.
func (o *Outbox) send(ctx context.Context, org string, b *box, batch []*queued) error {
	ctx, cancel := context.WithTimeout(ctx, deliverTime)
	defer cancel()
	errs := make([]error, len(batch))
	var work errgroup.Group
	for i, s := range batch {
		work.Go(func() error {
			return panics.Catch(func() { errs[i] = o.Store.Settle(ctx, org, o.current(ctx, org, s)) })
		})
	}
	panics.Raise(work.Wait())
	o.mu.Lock()
	defer o.mu.Unlock()
	var rest []*queued
	for i, s := range batch {
		if errors.Is(errs[i], ErrUnavailable) {
			rest = append(rest, s)
			continue
		}
		if errs[i] != nil {
			o.Logger.ErrorContext(ctx, "queued settlement lost", "org", org, "hold", s.Hold, "error", errs[i].Error())
		}
		delete(b.keys, s.key(true))
		delete(b.keys, s.key(false))
		b.drop(s.Hold)
		o.queued--
	}
	if len(rest) > 0 {
		o.fail(b)
	}
	taken := len(batch) - len(rest)
	clear(b.queue[:taken])
	copy(b.queue[taken:], rest)
	if b.queue = b.queue[taken:]; len(b.queue) == 0 {
		b.queue = nil
	}
	return errors.Join(errs...)
}

// sweep releases the holds of this gateway whose calls are no longer in progress. The caller holds b.turn.
func (o *Outbox) sweep(ctx context.Context, org string, b *box) error {
	ctx, cancel := context.WithTimeout(ctx, deliverTime)
	defer cancel()
	stray, err := o.strays(ctx, org, b)
	for i := 0; err == nil && i < len(stray); i++ {
		h := &stray[i]
		if err = o.Store.Settle(ctx, org, &Settlement{Hold: h.ID, End: Release}); err == nil {
			o.Logger.WarnContext(ctx, "released a reservation because its call is no longer in progress", "org", org, "hold", h.ID,
				"operation", h.Metadata.Operation, "decision", h.Metadata.Decision)
			o.Events.Released(org, h)
		}
	}
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.fail(b)
	}
	return err
}

// strays returns the holds of this gateway without a call in progress, neither now nor when the read of the store began.
func (o *Outbox) strays(ctx context.Context, org string, b *box) (stray []Hold, err error) {
	o.mu.Lock()
	b.gone = make(map[string]bool)
	o.mu.Unlock()
	state, err := o.Store.Holds(ctx, org)
	o.mu.Lock()
	defer o.mu.Unlock()
	defer func() { b.gone = nil }()
	if err != nil {
		return nil, err
	}
	b.seen = o.status(b, &state)
	for _, h := range state.Holds {
		if h.Holder.Incarnation == o.Self.Incarnation && !h.Open && !b.has(h.ID) {
			stray = append(stray, h)
		}
	}
	return stray, nil
}

// status summarizes holds. The caller holds mu.
func (o *Outbox) status(b *box, state *State) (s HoldStatus) {
	for i := range state.Holds {
		h := &state.Holds[i]
		age := state.Now.Sub(h.At)
		if h.Open {
			s.Open = max(s.Open, age)
			continue
		}
		s.InFlight = max(s.InFlight, age)
		if h.Holder.Incarnation == o.Self.Incarnation && age > o.CallTimeout && b.has(h.ID) {
			s.Overdue++
		}
	}
	return s
}

// Status returns the latest status of each organisation's holds.
func (o *Outbox) Status() map[string]HoldStatus {
	all := make(map[string]HoldStatus)
	for _, org := range o.Gateway.Budgeted() {
		all[org] = HoldStatus{}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for org, b := range o.boxes {
		s := b.seen
		s.Queued = len(b.queue)
		all[org] = s
	}
	return all
}
