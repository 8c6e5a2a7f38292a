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
	// pollInterval is the wait between two looks at other intents.
	pollInterval = 25 * time.Millisecond
	// minPolls is after how many glances another caller must still be there to be another:
	// word of its leaving may be on the way. Time alone says nothing: a gateway that stood
	// still has not looked.
	minPolls = 8
	// minWait is how long so many glances take at least.
	minWait = minPolls * pollInterval
	// propagationDelay is how long after a change the platform may not know of it.
	propagationDelay = time.Minute
)

// wait has a request wait until it is known of every other intent of its wish whether
// its caller waits, too. It is answered with the resource of one whose caller does not.
func (f *Deduplicator) wait(ctx context.Context, ex *filter.Exchange, seen filter.Pending) error {
	o := ex.Idempotency
	o.Deadline = f.deadline(ctx, ex)
	nap, cancel := context.WithDeadline(ctx, o.Deadline)
	defer cancel()
	ex.Admission.Slot.Pause()
	defer ex.Admission.Slot.Resume()
	for look := newBackoff(o.Deadline); ; {
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

// separate lists the intents that do not stand in the way of this one: their callers are
// known to wait, too.
func (f *Deduplicator) separate(o *filter.IdempotencyState) []string {
	if o.HasKey || o.Polls < minPolls {
		return o.Separate
	}
	return append(slices.Clip(o.Separate), f.Tracker.Waiting(&o.Keys)...)
}

// checkOthers looks at the other intents once, and reports whether there is one to wait for.
func (f *Deduplicator) checkOthers(ctx context.Context, ex *filter.Exchange, seen filter.Pending, look *backoff) (waits bool, err error) {
	o := ex.Idempotency
	due := sync.OnceValue(look.due)
	if o.Polls == minPolls {
		o.QueriedAt = seen.Now // from now on, gateways are asked for the callers that are theirs
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

// callerGone reports whether an intent has no caller any more who waits, or nobody who would
// tell. A call that takes longer than one can has been lost with its gateway.
func (f *Deduplicator) callerGone(ctx context.Context, ex *filter.Exchange, o *filter.IdempotencyState, i *filter.Intent, now time.Time) bool {
	return i.Age(now) > f.CallTimeout ||
		f.Tracker.CallerStatus(ctx, ex.Caller.Org, i, o.QueriedAt) == filter.CallerGone
}

// resolve looks once for the resource of an intent whose caller has gone, and answers with
// it. over says that there is no such intent any more: it has made nothing, or another
// request was answered with that.
func (f *Deduplicator) resolve(ctx context.Context, ex *filter.Exchange, o *filter.IdempotencyState, i *filter.Intent, now time.Time) (over bool, err error) {
	f.useLookalikeOf(ex, o, i)
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
	case found == nil && (i.Resource != "" && i.Age(now) > propagationDelay || i.Resource == "" && (f.searchExpired(i.Age(now)) || f.Tracker.Abandoned(ctx, i))):
		if err := f.Tracker.End(ctx, &o.Keys, i, &filter.IntentUpdate{Unindex: true}); err != nil {
			return false, nil // it is tried again
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

// useLookalikeOf gives a wish the looks of an intent: a request that was not judged does not
// know its own.
func (f *Deduplicator) useLookalikeOf(ex *filter.Exchange, o *filter.IdempotencyState, i *filter.Intent) {
	row, _ := operation.Of(ex.Operation.ID)
	o.Keys.Lookalikes = f.Tracker.LookalikeKey(ex.Caller.Org, lookalikeDigest(row.Kind, i.Name, i.Shape))
}

// replay answers with the resource of an earlier call.
func (f *Deduplicator) replay(ctx context.Context, ex *filter.Exchange, found map[string]any) error {
	if err := ex.Adopt(found); err != nil {
		return err
	}
	ex.Response.Header.Set(filter.HeaderReplayed, "true")
	return f.Addresses.Response(ctx, ex)
}

// outcomeUnknown refuses with 504 a call that may have been done.
func outcomeUnknown(ex *filter.Exchange) error {
	o := ex.Idempotency
	again := "Send the same request again to get it."
	if o.HasKey {
		again = "Send the same request again with the same " + filter.HeaderIdempotencyKey + " to get it."
	}
	row, _ := operation.Of(ex.Operation.ID)
	return problem.OutcomeUnknown.Newf("The platform has not said what became of the %s: it may have been created. %s", row.Kind.Noun(), again).
		With("Retry-After", "5").Because(ex.Event.Cause)
}

// backoff spaces out looks at the platform: the first at once, the next after half a
// second, and each one after twice the time.
type backoff struct {
	next   time.Time
	length time.Duration
	end    time.Time
}

const (
	// firstPause is the time between the first two looks.
	firstPause = 500 * time.Millisecond
	// lastLook is the time that is left for the last.
	lastLook = 500 * time.Millisecond
)

func newBackoff(end time.Time) *backoff { return &backoff{length: firstPause, end: end} }

// due reports whether it is time for a look.
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

// sleep waits, and reports whether ctx goes on.
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
