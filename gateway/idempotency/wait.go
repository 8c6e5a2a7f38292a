package idempotency

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

const (
	// pollInterval is the time between polls for the status of other intents.
	pollInterval = 25 * time.Millisecond
	// minPolls is the number of polls after which a request whose caller is still connected counts as separate. A disconnect may take that
	// long to be noticed. It is a number of polls and not a time, because a paused gateway process does not poll.
	minPolls = 8
	// minWait is the minimum duration of minPolls polls.
	minWait = minPolls * pollInterval
	// propagationDelay is the time after a change until the platform no longer returns old data.
	propagationDelay = time.Minute
)

// wait blocks until the callers of all other intents are known to be connected. If one of the callers has disconnected, wait responds with
// the resource of that caller's intent.
func (f *Deduplicator) wait(ctx context.Context, ex *filter.Exchange, seen filter.Pending) error {
	o := ex.Idempotency
	o.Deadline = f.deadline(ctx, ex)
	nap, cancel := context.WithDeadline(ctx, o.Deadline)
	defer cancel()
	ex.Admission.Slot.Pause()
	defer ex.Admission.Slot.Resume()
	for look := (&backoff{length: firstPause, end: o.Deadline}); ; {
		waits, err := f.checkOthers(ctx, ex, seen, look)
		if !waits || err != nil || ex.Response != nil {
			return err
		}
		if !sleep(nap, pollInterval) {
			return outcomeUnknown(ex)
		}
		o.Polls++
		if seen, err = f.Tracker.TryRecord(ctx, &o.Keys, &filter.Intent{}, nil); err != nil {
			return outcomeUnknown(ex)
		}
	}
}

// separate returns the intents that are known to be separate requests, because their callers are connected.
func (f *Deduplicator) separate(o *filter.IdempotencyState) []string {
	if o.HasKey || o.Polls < minPolls {
		return o.Separate
	}
	return append(slices.Clip(o.Separate), f.Tracker.Waiting(&o.Keys)...)
}

// checkOthers checks the other intents once. waits is true if it is still unknown for any of them whether the caller is connected.
func (f *Deduplicator) checkOthers(ctx context.Context, ex *filter.Exchange, seen filter.Pending, look *backoff) (waits bool, err error) {
	o := ex.Idempotency
	due := sync.OnceValue(look.due)
	if o.Polls == minPolls {
		o.QueriedAt = seen.Now // from now on, other gateways are asked about their callers
	}
	for i := range seen.Intents {
		it := &seen.Intents[i]
		switch {
		case slices.Contains(o.Separate, it.ID):
		case f.callerGone(ctx, ex, o, it, seen.Now):
			if !due() {
				waits = true
				continue
			}
			over, err := f.resolve(ctx, ex, o, it, seen.Now)
			if err != nil || ex.Response != nil {
				return false, err
			}
			waits = waits || !over
		case o.Polls >= minPolls && f.Tracker.CallerStatus(ctx, ex.Caller.Org, it, o.QueriedAt) == filter.CallerConnected:
			o.Separate = append(o.Separate, it.ID)
		default:
			waits = true
		}
	}
	return waits, nil
}

// callerGone reports whether the caller of an intent has disconnected or its gateway is dead. It also returns true if the intent is older
// than CallTimeout, because its gateway has then died.
func (f *Deduplicator) callerGone(
	ctx context.Context, ex *filter.Exchange, o *filter.IdempotencyState, i *filter.Intent, now time.Time,
) bool {
	return i.Age(now) > f.CallTimeout ||
		f.Tracker.CallerStatus(ctx, ex.Caller.Org, i, o.QueriedAt) == filter.CallerGone
}

// resolve searches once for the resource of an intent without a caller, and responds with the resource if it is found. over is true if the
// intent needs no further attention: its call created nothing, or a request has adopted its resource.
func (f *Deduplicator) resolve(
	ctx context.Context, ex *filter.Exchange, o *filter.IdempotencyState, i *filter.Intent, now time.Time,
) (over bool, err error) {
	row, _ := operation.Lookup(ex.Operation.ID)
	o.Keys.Lookalikes = lookalikeKey(row.Kind, i.Name, i.Shape) // a request that has not passed the policies has none yet
	look, cancel := context.WithCancel(ctx)
	if !o.Deadline.IsZero() {
		look, cancel = context.WithDeadline(ctx, o.Deadline)
	}
	defer cancel()
	found, err := f.find(look, ex, &o.Keys, i, i.Age(now))
	switch {
	case err != nil:
		ex.Event.Cause = err
		return false, nil
	case found == nil && (i.Resource != "" && i.Age(now) > propagationDelay || i.Resource == "" &&
		(i.Age(now) > f.CallTimeout+f.Unresolved || f.Tracker.GatewayGone(ctx, i))):
		if err := f.Tracker.End(ctx, &o.Keys, i, &filter.IntentUpdate{Unindex: true}); err != nil {
			return false, nil // retried later
		}
		return true, nil
	case found == nil:
		return false, nil
	}
	id, _ := found["id"].(string)
	mine, taken, err := f.Tracker.Adopt(ctx, &o.Keys, i, id)
	if err != nil || !taken {
		return err == nil, nil
	}
	o.Intent, o.Recorded, o.Outcome = mine, true, filter.OutcomeCreated
	return true, f.replay(ctx, ex, found)
}

// replay responds with the resource of an earlier call.
func (f *Deduplicator) replay(ctx context.Context, ex *filter.Exchange, found map[string]any) error {
	if err := ex.Adopt(found); err != nil {
		return err
	}
	ex.Response.Header.Set(filter.HeaderReplayed, "true")
	return f.Addresses.Response(ctx, ex)
}

// outcomeUnknown returns the 504 for a call that may have been carried out.
func outcomeUnknown(ex *filter.Exchange) error {
	o := ex.Idempotency
	again := "Send the same request again to get it."
	if o.HasKey {
		again = "Send the same request again with the same " + filter.HeaderIdempotencyKey + " to get it."
	}
	row, _ := operation.Lookup(ex.Operation.ID)
	return problem.OutcomeUnknown.Newf("The platform has not confirmed the %s; it may have been created. %s", row.Kind.Noun(), again).
		With("Retry-After", "5").Because(ex.Event.Cause)
}

// backoff spaces out requests to the platform: the first is immediate, the second follows after half a second, and each further pause is
// twice as long.
type backoff struct {
	next   time.Time
	length time.Duration
	end    time.Time
}

const (
	// firstPause is the pause between the first two requests.
	firstPause = 500 * time.Millisecond
	// lastLook is the time between the last request and the deadline.
	lastLook = 500 * time.Millisecond
)

// due reports whether it is time for the next request.
func (p *backoff) due() bool {
	now := time.Now()
	if now.Before(p.next) {
		return false
	}
	p.next = now.Add(p.length)
	if last := p.end.Add(-lastLook); p.next.After(last) && now.Before(last) {
		p.next = last
	}
	p.length *= 2
	return true
}

// sleep waits for d. It returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
