package once

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
	// glance is the wait between two looks at other intents.
	glance = 25 * time.Millisecond
	// patient is after how many glances another caller must still be there to be another:
	// word of its leaving may be on the way. Time alone says nothing: a gateway that stood
	// still has not looked.
	patient = 8
	// grace is how long so many glances take at least.
	grace = patient * glance
	// fresh is how long after a change the platform may not know of it.
	fresh = time.Minute
)

// wait has a request wait until it is known of every other intent of its wish whether
// its caller waits, too. It is answered with the resource of one whose caller does not.
func (f *Deduplicator) wait(ctx context.Context, ex *filter.Exchange, seen filter.Seen) error {
	o := ex.Once
	o.Until = f.until(ctx, ex)
	nap, cancel := context.WithDeadline(ctx, o.Until)
	defer cancel()
	ex.Admission.Slot.Rest()
	defer ex.Admission.Slot.Work()
	for look := newPause(o.Until); ; {
		waits, err := f.turn(ctx, ex, seen, look)
		if !waits || err != nil || ex.Answer != nil {
			return err
		}
		if !sleep(nap, glance) {
			return unknown(ex)
		}
		o.Glances++
		if seen, err = f.Desk.Try(ctx, &o.Wish, &filter.Intent{}, nil); err != nil {
			return unknown(ex)
		}
	}
}

// passed lists the intents that do not stand in the way of this one: their callers are
// known to wait, too.
func (f *Deduplicator) passed(o *filter.Once) []string {
	if o.Keyed || o.Glances < patient {
		return o.Past
	}
	return append(slices.Clip(o.Past), f.Desk.Beside(&o.Wish)...)
}

// turn looks at the other intents once, and reports whether there is one to wait for.
func (f *Deduplicator) turn(ctx context.Context, ex *filter.Exchange, seen filter.Seen, look *pause) (waits bool, err error) {
	o := ex.Once
	due := sync.OnceValue(look.due)
	if o.Glances == patient {
		o.Asked = seen.Now // from now on, gateways are asked for the callers that are theirs
	}
	for i := range seen.Intents {
		it := &seen.Intents[i]
		switch {
		case slices.Contains(o.Past, it.ID):
		case f.gone(ctx, ex, o, it, seen.Now):
			if !due() {
				waits = true
				continue
			}
			over, err := f.settle(ctx, ex, o, it, seen.Now)
			if err != nil || ex.Answer != nil {
				return false, err
			}
			waits = waits || !over
		case o.Glances >= patient && f.Desk.Fate(ctx, ex.Caller.Org, it, o.Asked) == filter.There:
			o.Past = append(o.Past, it.ID)
		default:
			waits = true
		}
	}
	return waits, nil
}

// gone reports whether an intent has no caller any more who waits, or nobody who would
// tell. A call that takes longer than one can has been lost with its gateway.
func (f *Deduplicator) gone(ctx context.Context, ex *filter.Exchange, o *filter.Once, i *filter.Intent, now time.Time) bool {
	return i.Age(now) > f.Patience ||
		f.Desk.Fate(ctx, ex.Caller.Org, i, o.Asked) == filter.Gone
}

// settle looks once for the resource of an intent whose caller has gone, and answers with
// it. over says that there is no such intent any more: it has made nothing, or another
// request was answered with that.
func (f *Deduplicator) settle(ctx context.Context, ex *filter.Exchange, o *filter.Once, i *filter.Intent, now time.Time) (over bool, err error) {
	f.recall(ex, o, i)
	look, cancel := context.WithCancel(ctx)
	if !o.Until.IsZero() {
		look, cancel = context.WithDeadline(ctx, o.Until)
	}
	defer cancel()
	found, err := f.find(look, ex, &o.Wish, i, i.Age(now))
	switch {
	case err != nil:
		ex.Event.Cause = err
		return false, nil
	case found == nil && (i.Resource != "" && i.Age(now) > fresh || i.Resource == "" && (f.over(i.Age(now)) || f.Desk.Abandoned(ctx, i))):
		if err := f.Desk.End(ctx, &o.Wish, i, &filter.End{Unlike: true}); err != nil {
			return false, nil // it is tried again
		}
		return true, nil
	case found == nil:
		return false, nil
	}
	id, _ := found["id"].(string)
	mine, taken, err := f.Desk.Take(ctx, &o.Wish, i, id)
	if err != nil || !taken {
		return err == nil, nil
	}
	o.Intent, o.Noted, o.End = mine, true, filter.OutcomeMade
	return true, f.give(ctx, ex, found)
}

// recall gives a wish the looks of an intent: a request that was not judged does not
// know its own.
func (f *Deduplicator) recall(ex *filter.Exchange, o *filter.Once, i *filter.Intent) {
	row, _ := operation.Of(ex.Operation.ID)
	o.Wish.Like = f.Desk.Like(ex.Caller.Org, looks(row.Kind, i.Name, i.Shape))
}

// give answers with the resource of an earlier call.
func (f *Deduplicator) give(ctx context.Context, ex *filter.Exchange, found map[string]any) error {
	if err := ex.Adopt(found); err != nil {
		return err
	}
	ex.Answer.Header.Set(filter.HeaderReplayed, "true")
	return f.Addresses.Response(ctx, ex)
}

// unknown refuses with 504 a call that may have been done.
func unknown(ex *filter.Exchange) error {
	o := ex.Once
	again := "Send the same request again to get it."
	if o.Keyed {
		again = "Send the same request again with the same " + filter.HeaderIdempotencyKey + " to get it."
	}
	row, _ := operation.Of(ex.Operation.ID)
	return problem.OutcomeUnknown.Newf("The platform has not said what became of the %s: it may have been created. %s", row.Kind.Noun(), again).
		With("Retry-After", "5").Because(ex.Event.Cause)
}

// pause spaces out looks at the platform: the first at once, the next after half a
// second, and each one after twice the time.
type pause struct {
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

func newPause(end time.Time) *pause { return &pause{length: firstPause, end: end} }

// due reports whether it is time for a look.
func (p *pause) due() bool {
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
