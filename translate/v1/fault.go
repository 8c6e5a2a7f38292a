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
	textBroken       = "Something went wrong. Please try again later or contact support."
	textNoCapacity   = "There are no instances currently available"
	textNoFunds      = "Your account balance is too low to rent a pod. Please add funds to your account."
	textInvalid      = "Invalid request body"
	textNotObject    = "invalid request body"
	textExtraKeys    = "Extra input keys provided in request body"
	textUnfinished   = "create pod: the pod is still being created. Send the same request again to get it."
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

// body is what the caller gets: message for those who read the documented key,
// error and status for those who read what v1 really sent.
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

// about says what a v2 call was made for, so that its refusal can be told in
// v1's words.
type about struct {
	verb string // "create pod"
	noun string // "pod"
	// missing is the text for a 404, by default noun + " not found".
	missing string
	// given tells that the 404 is about an id in the caller's body: it becomes
	// a 400 with missing as its text.
	given bool
	// places tells that a 400 may be a shortage.
	places bool
}

// unknown is the about of a look-up of an id the caller gave in the body.
func unknown(kind, id string) about {
	return about{verb: "read " + kind, noun: kind, missing: fmt.Sprintf("%s %q not found", kind, id), given: true}
}

// refused tells a v2 answer that is no success, or its absence, in v1's words.
func (a *API) refused(w about, resp *translate.Response, err error) *fault {
	if err != nil || resp == nil {
		return lost(err)
	}
	detail := resp.Detail()
	f := &fault{status: resp.Status, text: cmp.Or(detail, http.StatusText(resp.Status)), detail: detail}
	switch {
	case resp.OK(): // a success that could not be read
		return &fault{status: http.StatusBadGateway, text: textBroken}
	case resp.Status == http.StatusBadRequest && w.places && translate.IsCapacity(detail):
		f.status, f.text = a.cfg.CapacityStatus, w.verb+": "+detail
	case resp.Status == http.StatusUnauthorized:
		f.text = textUnauthorized
	case resp.Status == http.StatusPaymentRequired:
		f.text = paymentText(w, resp)
	case resp.Status == http.StatusForbidden:
		f.text = legacy.Forbidden(detail)
	case resp.Status == http.StatusNotFound:
		f.text = cmp.Or(w.missing, w.noun+" not found")
		if w.given {
			f.status = http.StatusBadRequest
		}
	case resp.Status == http.StatusUnprocessableEntity:
		f.status = http.StatusBadRequest
		if f.problems = legacyNames(resp.Errors()); len(f.problems) > 0 {
			f.text = textInvalid
		}
	case resp.Status >= http.StatusInternalServerError:
		f.text = textBroken
	case resp.Status == http.StatusRequestEntityTooLarge, resp.Status == http.StatusTooManyRequests:
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
	if e, ok := errors.AsType[*legacy.Shortage](err); ok {
		return a.podShortage(e)
	}
	if errors.Is(err, legacy.ErrUnfinished) {
		return &fault{status: http.StatusGatewayTimeout, text: textUnfinished, wait: legacy.ResumeAfter}
	}
	r, ok := errors.AsType[*legacy.RefusedError](err)
	if !ok {
		return lost(err)
	}
	w := about{verb: r.Verb, noun: string(r.Noun), places: r.Places}
	switch {
	case r.Verb == "delete pod":
		w.missing = "pod not found to terminate"
	case r.Given == "":
	case r.Noun == legacy.NounDataCenter:
		w.given, w.missing = true, fmt.Sprintf("%s: Data center %q not found", r.Verb, r.Given)
	default:
		w.given, w.missing = true, fmt.Sprintf("%s %q not found", r.Noun, r.Given)
	}
	return a.refused(w, r.Response, r.Err)
}

// paymentText is v1's sentence about an empty account, unless the refusal is a
// budget of the organisation's, which has words of its own and a decision to
// look up.
func paymentText(w about, resp *translate.Response) string {
	if detail := resp.Detail(); detail != "" && translate.Text(resp.Body, "decision") != "" {
		return w.verb + ": " + detail
	}
	return w.verb + ": " + textNoFunds
}

// lost is the fault of a call without an answer.
func lost(err error) *fault {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, translate.ErrBudget) {
		return &fault{status: http.StatusGatewayTimeout, text: textBroken}
	}
	return &fault{status: http.StatusBadGateway, text: textBroken}
}
