package v1

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// The fixed texts of v1's errors.
const (
	textUnauthorized = "Unauthorized"
	textBroken       = legacy.TextBroken
	textNoCapacity   = "There are no instances currently available"
	textNoFunds      = "Your account balance is too low to rent a pod. Please add funds to your account."
	textInvalid      = "Invalid request body"
	textNotObject    = "invalid request body"
	textExtraKeys    = "Extra input keys provided in request body"
)

// fault is a refusal in v1's shape. It is the error handlers return.
type fault struct {
	status   int
	text     string
	detail   string // v2's own words where text is not them
	problems []string
	wait     time.Duration // for Retry-After; 0 for none
}

// Error implements error.
func (f *fault) Error() string { return f.text }

// body is the caller's: message for those who read the documented key,
// error and status for those who read the members that v1 really sent.
func (f *fault) body() map[string]any {
	body := map[string]any{"message": f.text, "error": f.text, "status": f.status}
	if len(f.problems) > 0 {
		body["problems"] = f.problems
	}
	if f.detail != "" && f.detail != f.text {
		body["detail"] = f.detail
	}
	return body
}

// bad is a 400 raised before any v2 call, or one about the request itself.
func bad(format string, args ...any) *fault {
	return &fault{status: http.StatusBadRequest, text: fmt.Sprintf(format, args...)}
}

// broken is a fault of ours.
func broken() *fault { return &fault{status: http.StatusInternalServerError, text: textBroken} }

// refused tells a v2 answer that is no success, or its absence, in v1's words.
func (a *API) refused(r *legacy.RefusedError) *fault {
	resp := r.Response
	if r.Err != nil || resp == nil {
		return noResponseFault(r.Err)
	}
	detail := resp.Detail()
	f := &fault{status: resp.Status, text: cmp.Or(detail, http.StatusText(resp.Status)), detail: detail}
	switch {
	case resp.OK(): // a success that could not be read
		return &fault{status: http.StatusBadGateway, text: textBroken}
	case resp.Status == http.StatusBadRequest && r.MayBeShortage && translate.IsCapacity(detail):
		f.status, f.text = a.shortage(), r.Verb+": "+detail
	case resp.Status == http.StatusUnauthorized:
		f.text = textUnauthorized
	case resp.Status == http.StatusPaymentRequired:
		f.text = paymentText(r)
	case resp.Status == http.StatusForbidden:
		f.text = legacy.Forbidden(detail)
	case resp.Status == http.StatusNotFound && r.Noun != "":
		f.text = missingText(r.Purpose)
		if r.BodyID != "" {
			f.status = http.StatusBadRequest
		}
	case resp.Kind == "key_reused", resp.Kind == "in_progress": // lookup the header Idempotency-Key, which v1 never had
		f.wait = resp.RetryAfter()
	case resp.Status == http.StatusUnprocessableEntity:
		f.status = http.StatusBadRequest
		if f.problems = v1Names.In(resp.Errors()); len(f.problems) > 0 {
			f.text = textInvalid
		}
	case resp.Status >= http.StatusInternalServerError:
		f.text = legacy.Broken(resp)
	case resp.Status == http.StatusRequestEntityTooLarge, resp.Status == http.StatusTooManyRequests:
	case r.Purpose == (legacy.Purpose{}): // raised outside, with a status of its own
	default: // 400 about the request, 409 and whatever else v1 did not know
		f.status = http.StatusBadRequest
	}
	return f
}

// faultOf tells any error in v1's words.
func (a *API) faultOf(err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	if i, ok := errors.AsType[*legacy.InvalidError](err); ok {
		return bad("%s", i.Error())
	}
	if e, ok := errors.AsType[*legacy.ShortageError](err); ok {
		return a.podShortage(e)
	}
	if u, ok := errors.AsType[*translate.UnfinishedError](err); ok {
		return &fault{status: http.StatusGatewayTimeout, text: "create " + u.Noun + ": " + u.Error(), wait: translate.UnfinishedRetryAfter}
	}
	r, ok := errors.AsType[*legacy.RefusedError](err)
	if !ok {
		return noResponseFault(err)
	}
	return a.refused(r)
}

// missingText names the subject of a 404.
func missingText(about legacy.Purpose) string {
	switch {
	case about.Noun == legacy.NounTerminated:
		return "pod not found to terminate"
	case about.BodyID == "":
		return string(about.Noun) + " not found"
	case about.Noun == legacy.NounDataCenter:
		return fmt.Sprintf("%s: Data center %q not found", about.Verb, about.BodyID)
	}
	return fmt.Sprintf("%s %q not found", about.Noun, about.BodyID)
}

// paymentText is v1's sentence about an empty account, unless the refusal is a
// budget of the organisation's, which has words of its own.
func paymentText(r *legacy.RefusedError) string {
	text := textNoFunds
	if r.Response.Kind != "" {
		text = r.Response.Detail()
	}
	if r.Verb == "" {
		return text
	}
	return r.Verb + ": " + text
}

// noResponseFault is the fault of a call without an answer.
func noResponseFault(err error) *fault {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, translate.ErrBudget) {
		return &fault{status: http.StatusGatewayTimeout, text: textBroken}
	}
	return &fault{status: http.StatusBadGateway, text: textBroken}
}
