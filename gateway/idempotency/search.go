package idempotency

import (
	"context"
	"mime"
	"net/http"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/problem"
)

// MaySend reports whether the call of an intent may still be sent; see [Tracker.MaySend].
func (f *Deduplicator) MaySend(id string) bool { return f.Tracker.MaySend(id) }

// Search determines the outcome of a call that creates a resource, if the response was lost. It looks for the resource with increasing
// pauses until the deadline of the request. If it finds the resource, the resource becomes the response; otherwise Search returns 504.
func (f *Deduplicator) Search(ctx context.Context, ex *filter.Exchange) error {
	o := ex.Idempotency
	attempts := -1
	switch o.Outcome = outcome(ex); o.Outcome {
	case filter.OutcomeNotSent, filter.OutcomeRefused:
		return nil
	case filter.OutcomeCreated:
		o.Intent.Resource, _ = ex.Response.UpstreamObject()["id"].(string)
		return nil
	case filter.OutcomeFailed:
		attempts = 1
	case filter.OutcomeUnknown:
	}
	found, err := f.search(ctx, ex, o, attempts)
	switch {
	case found != nil:
		o.Outcome = filter.OutcomeCreated
		o.Intent.Resource, _ = found["id"].(string)
		return ex.Adopt(found)
	case err == nil && attempts == 1:
		return nil // the platform reported a failure and nothing was created
	}
	o.Outcome = filter.OutcomeUnknown
	ex.RecordFailure(err)
	return outcomeUnknown(ex)
}

// search looks for the resource of a call until the deadline of the request. It makes at most the given number of attempts; a negative
// number means no limit.
func (f *Deduplicator) search(
	ctx context.Context, ex *filter.Exchange, o *filter.IdempotencyState, attempts int,
) (found map[string]any, err error) {
	if f.LookupTimeout == 0 && !ex.Progress.Nested {
		return nil, nil
	}
	ctx, cancel := context.WithDeadline(ctx, f.deadline(ctx, ex))
	defer cancel()
	ex.Admission.Slot.Pause()
	defer ex.Admission.Slot.Resume()
	for wait := firstPause; attempts != 0; attempts-- {
		goes := sleep(ctx, wait)
		found, err = f.find(ctx, ex, &o.Keys, &o.Intent, f.Reader.Recorder.Now().Sub(ex.In.Received))
		if found != nil || !goes {
			break
		}
		wait *= 2
	}
	return found, err
}

// outcome classifies the platform's response to a call that creates a resource. It must be called before other stages modify the response.
func outcome(ex *filter.Exchange) filter.Outcome {
	switch ex.Sent {
	case filter.NotSent:
		return filter.OutcomeNotSent
	case filter.SentUnanswered:
		return filter.OutcomeUnknown
	case filter.Answered:
	}
	status := ex.Response.Status
	switch id, _ := ex.Response.UpstreamObject()["id"].(string); {
	case filter.IsRefusalStatus(status):
		return filter.OutcomeRefused
	case status >= http.StatusOK && status < http.StatusMultipleChoices && id != "":
		return filter.OutcomeCreated
	case filter.IsFailureStatus(status):
		media, _, _ := mime.ParseMediaType(ex.Response.Header.Get("Content-Type"))
		if media == problem.ContentType && ex.Response.UpstreamObject() != nil {
			return filter.OutcomeFailed
		}
	}
	return filter.OutcomeUnknown
}
