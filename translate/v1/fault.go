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

// Fixed error texts of v1.
const (
	textUnauthorized = "Unauthorized"
	textBroken       = legacy.TextBroken
	textNoCapacity   = "There are no instances currently available"
	textNoFunds      = "Your account balance is too low to rent a pod. Please add funds to your account."
	textInvalid      = "Invalid request body"
	textNotObject    = "invalid request body"
	textExtraKeys    = "Extra input keys provided in request body"
)

// fault is a refusal in v1's form. Handlers return it as an error.
type fault struct {
	status   int
	text     string
	detail   string // v2's message, if it differs from text
	problems []string
	wait     time.Duration // for Retry-After; 0 omits the header
}

// Error implements error.
func (f *fault) Error() string { return f.text }

// body returns the response body. It has "message" for clients that read the documented field, and "error" and "status"
// for clients that read the fields that v1 actually sent.
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

// bad returns a 400 that was raised before any v2 call, or that is about the request itself.
func bad(format string, args ...any) *fault {
	return &fault{status: http.StatusBadRequest, text: fmt.Sprintf(format, args...)}
}

// broken returns the fault for an internal error.
func broken() *fault { return &fault{status: http.StatusInternalServerError, text: textBroken} }

// refused converts an unsuccessful or missing v2 response to a v1 fault. sent lists the fields that the caller sent.
func (a *API) refused(r *legacy.RefusedError, sent form) *fault {
	resp := r.Response
	if r.Err != nil || resp == nil {
		return noResponseFault(r.Err)
	}
	names := v1Names(sent)
	detail := names.In([]string{resp.Detail()})[0]
	f := &fault{status: resp.Status, text: cmp.Or(detail, http.StatusText(resp.Status)), detail: detail}
	switch {
	case resp.OK(): // a success with an unreadable body
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
	case resp.Kind == "key_reused", resp.Kind == "in_progress": // about the header Idempotency-Key, which v1 did not have
		f.wait = resp.RetryAfter()
	case resp.Status == http.StatusUnprocessableEntity:
		f.status = http.StatusBadRequest
		if f.problems = names.In(resp.Errors()); len(f.problems) > 0 {
			f.text = textInvalid
		}
	case resp.Status >= http.StatusInternalServerError:
		f.text = legacy.Broken(resp)
	case resp.Status == http.StatusRequestEntityTooLarge, resp.Status == http.StatusTooManyRequests:
	case r.Purpose == (legacy.Purpose{}): // raised outside the translation, with its own status
	default: // a 400 about the request, a 409, or a status unknown in v1
		f.status = http.StatusBadRequest
	}
	return f
}

// faultOf converts any error to a v1 fault. sent lists the fields that the caller sent.
func (a *API) faultOf(err error, sent form) *fault {
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
	return a.refused(r, sent)
}

// missingText returns the message of a 404.
func missingText(purpose legacy.Purpose) string {
	switch {
	case purpose.Noun == legacy.NounTerminated:
		return "pod not found to terminate"
	case purpose.BodyID == "":
		return string(purpose.Noun) + " not found"
	case purpose.Noun == legacy.NounDataCenter:
		return fmt.Sprintf("%s: Data center %q not found", purpose.Verb, purpose.BodyID)
	}
	return fmt.Sprintf("%s %q not found", purpose.Noun, purpose.BodyID)
}

// paymentText returns v1's message about an empty account, or the gateway's message if a budget of the organisation
// refused the call.
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

// noResponseFault returns the fault for a call without a response.
func noResponseFault(err error) *fault {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, translate.ErrBudget) {
		return &fault{status: http.StatusGatewayTimeout, text: textBroken}
	}
	return &fault{status: http.StatusBadGateway, text: textBroken}
}
