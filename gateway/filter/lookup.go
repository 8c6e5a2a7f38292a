package filter

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Lookup finds out the outcome of a create whose answer was lost: it looks for the
// resource at growing distances while the request's time lasts. A found resource is the
// call's answer. It sees the platform's answers as they came.
type Lookup struct {
	Finder Finder
	Now    func() time.Time
}

// Name implements Filter.
func (*Lookup) Name() string { return "lookup" }

// Request refuses with 503 a call that may have been taken for one of a dead gateway.
func (*Lookup) Request(_ context.Context, ex *Exchange) error {
	if o := ex.Once; o != nil && o.noted && !ex.Ports.Intents.MaySend(o.intent.ID) {
		return problem.RepeatsUnavailable.New("the gateway was held up: nothing was sent").With("Retry-After", "1").Because(errHeldUp)
	}
	return nil
}

// Response replaces an answer that leaves a create open, by the new resource or by
// 504.
func (f *Lookup) Response(ctx context.Context, ex *Exchange) error {
	o := ex.Once
	row, _ := operation.Of(ex.Operation.ID)
	if o == nil || !o.noted || row.Verb != operation.VerbCreate {
		return nil
	}
	looks := -1
	switch o.end = ex.end(); o.end {
	case endNone, endRefused:
		return nil
	case endMade:
		o.intent.Resource, _ = recordIn(ex.Answer)["id"].(string)
		return nil
	case endFailed:
		looks = 1
	case endUnknown:
	}
	found, err := f.await(ctx, ex, o, looks)
	switch {
	case found != nil:
		o.end = endMade
		o.intent.Resource, _ = found["id"].(string)
		return ex.adopt(found)
	case err == nil && looks == 1:
		return nil // the platform says that it failed, and nothing is there
	}
	o.end = endUnknown
	if err != nil && ex.Event.Cause == nil {
		ex.Event.Cause = err
	}
	return unknown(ex, o)
}

// await looks for the resource of a call while its time lasts, and so often at most, unless
// that is negative.
func (f *Lookup) await(ctx context.Context, ex *Exchange, o *once, looks int) (found map[string]any, err error) {
	if f.Finder.Time == 0 && !ex.Path.Nested {
		return nil, nil
	}
	ctx, cancel := context.WithDeadline(ctx, f.Finder.until(ctx, ex))
	defer cancel()
	ex.Admission.Slot.Rest()
	defer ex.Admission.Slot.Work()
	for wait := firstPause; looks != 0; looks-- {
		goes := sleep(ctx, wait)
		found, err = f.Finder.Find(ctx, ex, &o.wish, &o.intent, f.Now().Sub(ex.In.Received))
		if found != nil || !goes {
			break
		}
		wait *= 2
	}
	return found, err
}

// end is the outcome of a create by the platform's answer.
type end uint8

const (
	// endNone means that the platform has seen nothing of it.
	endNone end = iota
	// endMade and endRefused mean that it has made the resource, or refused to.
	endMade
	endRefused
	// endFailed means that it says it failed, by a problem document.
	endFailed
	// endUnknown is everything else.
	endUnknown
)

// end reads the platform's answer to a create, before any stage has rewritten it.
func (ex *Exchange) end() end {
	switch ex.Sent {
	case NotSent:
		return endNone
	case SentOut:
		return endUnknown
	case Answered:
	}
	status := ex.Answer.Status
	switch id, _ := recordIn(ex.Answer)["id"].(string); {
	case refuses(status):
		return endRefused
	case status >= http.StatusOK && status < http.StatusMultipleChoices && id != "":
		return endMade
	case fails(status):
		media, _, _ := mime.ParseMediaType(ex.Answer.Header.Get("Content-Type"))
		if media == problem.ContentType && recordIn(ex.Answer) != nil {
			return endFailed
		}
	}
	return endUnknown
}

// fails reports whether the platform says by a status that a call failed, or that it came
// too late or too early: the gateway looks for its effect once.
func fails(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusInternalServerError, http.StatusServiceUnavailable:
		return true
	}
	return false
}

// refuses reports whether the platform says by a status that it has done nothing.
func refuses(status int) bool {
	return status >= http.StatusBadRequest && status < http.StatusInternalServerError && !fails(status)
}

// adopt makes a resource that was found the answer to its create.
func (ex *Exchange) adopt(found map[string]any) error {
	body, err := strictjson.Append(nil, found)
	if err != nil {
		return fmt.Errorf("encode what was found: %w", err)
	}
	ex.Adopted, _ = found["id"].(string)
	ex.Answer = &Answer{Status: http.StatusCreated, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Relayed: true}
	ex.Faults = nil
	e := ex.Event
	e.Outcome, e.Refusal, e.Stage, e.Detail = "", "", "", ""
	return nil
}
