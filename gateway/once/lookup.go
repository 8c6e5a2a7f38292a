package once

import (
	"context"
	"mime"
	"net/http"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/problem"
)

// MaySend reports whether the call of an intent may still be made: no other gateway can have taken this one for dead.
func (f *Deduplicator) MaySend(id string) bool { return f.Desk.MaySend(id) }

// Search finds out the outcome of a create whose answer was lost: it looks for the
// resource at growing distances while the request's time lasts. A found resource is the
// call's answer; otherwise the answer is 504.
func (f *Deduplicator) Search(ctx context.Context, ex *filter.Exchange) error {
	o := ex.Once
	looks := -1
	switch o.End = outcome(ex); o.End {
	case filter.OutcomeNone, filter.OutcomeRefused:
		return nil
	case filter.OutcomeMade:
		o.Intent.Resource, _ = ex.Answer.Record()["id"].(string)
		return nil
	case filter.OutcomeFailed:
		looks = 1
	case filter.OutcomeUnknown:
	}
	found, err := f.await(ctx, ex, o, looks)
	switch {
	case found != nil:
		o.End = filter.OutcomeMade
		o.Intent.Resource, _ = found["id"].(string)
		return ex.Adopt(found)
	case err == nil && looks == 1:
		return nil // the platform says that it failed, and nothing is there
	}
	o.End = filter.OutcomeUnknown
	if err != nil && ex.Event.Cause == nil {
		ex.Event.Cause = err
	}
	return unknown(ex)
}

// await looks for the resource of a call while its time lasts, and so often at most, unless
// that is negative.
func (f *Deduplicator) await(ctx context.Context, ex *filter.Exchange, o *filter.Once, looks int) (found map[string]any, err error) {
	if f.Time == 0 && !ex.Path.Nested {
		return nil, nil
	}
	ctx, cancel := context.WithDeadline(ctx, f.until(ctx, ex))
	defer cancel()
	ex.Admission.Slot.Rest()
	defer ex.Admission.Slot.Work()
	for wait := firstPause; looks != 0; looks-- {
		goes := sleep(ctx, wait)
		found, err = f.find(ctx, ex, &o.Wish, &o.Intent, f.Reader.Recorder.Now().Sub(ex.In.Received))
		if found != nil || !goes {
			break
		}
		wait *= 2
	}
	return found, err
}

// outcome reads the platform's answer to a create, before any stage has rewritten it.
func outcome(ex *filter.Exchange) filter.Outcome {
	switch ex.Sent {
	case filter.NotSent:
		return filter.OutcomeNone
	case filter.SentOut:
		return filter.OutcomeUnknown
	case filter.Answered:
	}
	status := ex.Answer.Status
	switch id, _ := ex.Answer.Record()["id"].(string); {
	case filter.Refuses(status):
		return filter.OutcomeRefused
	case status >= http.StatusOK && status < http.StatusMultipleChoices && id != "":
		return filter.OutcomeMade
	case filter.Fails(status):
		media, _, _ := mime.ParseMediaType(ex.Answer.Header.Get("Content-Type"))
		if media == problem.ContentType && ex.Answer.Record() != nil {
			return filter.OutcomeFailed
		}
	}
	return filter.OutcomeUnknown
}
