package graphql

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/graphql/engine"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// Codes in errors[].extensions.code.
const (
	codeBadInput        = engine.CodeBadInput
	codeUnauthenticated = "UNAUTHENTICATED"
	codeForbidden       = "FORBIDDEN"
	codeFunds           = "INSUFFICIENT_FUNDS"
	codeNoCapacity      = "NO_CAPACITY"
	codePodNotFound     = "POD_NOT_FOUND"
	codeNotFound        = "NOT_FOUND"
	codeTooLarge        = engine.CodeTooLarge
	codeRateLimited     = "RATE_LIMITED"
	codeNotSupported    = "NOT_SUPPORTED"
	codeInternal        = "INTERNAL_SERVER_ERROR"
	codeMethod          = "METHOD_NOT_ALLOWED"

	// One orchestrator checks for this text in the code of a failed deleteCluster.
	codeClusterNotFound = "Cluster not found"
)

// Texts that clients compare or search for. They must not change.
const (
	textNoCapacity   = "There are no longer any instances available with the requested specifications. Please refresh and try again."
	textFunds        = "Your account balance is too low to rent a pod. Please add funds to your account."
	textRetryLater   = legacy.TextBroken
	textTooMany      = "too many requests"
	textUnauthorized = "Unauthorized"
	textNoSpot       = "Spot pods are no longer offered"
)

// fault is one entry of "errors". It implements error, so that resolvers can return it.
type fault struct {
	message string
	code    string
	// status is the status of the v2 response that caused the fault, or 0 if there was no call.
	status int
	// http is the HTTP status of the whole response, for faults that clients detect by it (401, 413, 429); 0 means 200.
	http   int
	errors []string
	policy string
	// kind is the kind of the gateway's refusal; shortfall describes the exhausted budget.
	kind      string
	shortfall map[string]any
	// limit names the exceeded limit of Limits.
	limit string
	// decision is the id under which a policy refusal can be explained.
	decision string
	// approval is the id of the approval request that the refusal created.
	approval string
	// retryAfter is the Retry-After header of the v2 response.
	retryAfter string
	line, col  int
	// cause is logged and never sent to callers.
	cause error
}

func (f *fault) Error() string {
	if f.cause != nil {
		return f.message + ": " + f.cause.Error()
	}
	return f.message
}

func (f *fault) Unwrap() error { return f.cause }

// badInput returns the fault for invalid input, detected before any v2 call.
func badInput(message string) *fault { return &fault{message: message, code: codeBadInput} }

func internal(cause error) *fault {
	return &fault{message: textRetryLater, code: codeInternal, status: http.StatusInternalServerError, cause: cause}
}

// asFault converts any error to a fault. An unknown error becomes an internal one, whose message is not sent to callers.
func asFault(err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	if e, ok := errors.AsType[*engine.Error](err); ok {
		f := &fault{message: e.Message, code: e.Code, limit: e.Limit, line: e.Line, col: e.Column}
		if e.Code == codeTooLarge {
			f.http = http.StatusRequestEntityTooLarge
		}
		return f
	}
	if i, ok := errors.AsType[*legacy.InvalidError](err); ok {
		return badInput(i.Error())
	}
	if e, ok := errors.AsType[*legacy.ShortageError](err); ok {
		return noCapacity(e.Status())
	}
	if u, ok := errors.AsType[*translate.UnfinishedError](err); ok {
		return &fault{message: u.Error(), code: codeInternal, status: http.StatusGatewayTimeout}
	}
	if r, ok := errors.AsType[*legacy.RefusedError](err); ok {
		if r.Err != nil || r.Response == nil || r.Response.OK() { // no response, or an unreadable one
			return unanswered(r)
		}
		f := refusal(r.Response, r.Noun)
		if r.MayBeShortage && r.Response.Status == http.StatusBadRequest && translate.IsCapacity(r.Response.Detail()) {
			f.code = codeNoCapacity
		}
		return f
	}
	f := internal(err)
	if errors.Is(err, context.DeadlineExceeded) {
		f.status = http.StatusGatewayTimeout
	}
	return f
}

// unanswered returns the fault for a v2 call without a usable response. It is the gateway's fault if the call was not
// made, otherwise the platform's.
func unanswered(err *legacy.RefusedError) *fault {
	if err.Err == nil {
		f := internal(err)
		f.status = http.StatusBadGateway
		return f
	}
	f := asFault(err.Err)
	if f.status == http.StatusInternalServerError {
		f.status = http.StatusBadGateway
	}
	return f
}

// entry returns the member of "errors" for the fault (specification, section 7.1.2). path locates the value that is null
// because of it.
func (f *fault) entry(path []any) any {
	type location struct {
		Line   int `json:"line"`
		Column int `json:"column"`
	}
	type extensions struct {
		Code     string   `json:"code"`
		Status   int      `json:"status,omitempty"`
		Kind     string   `json:"kind,omitempty"`
		Policy   string   `json:"policy,omitempty"`
		Decision string   `json:"decision,omitempty"`
		Approval string   `json:"approval,omitempty"`
		Limit    string   `json:"limit,omitempty"`
		Errors   []string `json:"errors,omitempty"`
		// Shortfall holds members of the v2 refusal, including a limit that differs from Limit above.
		Shortfall map[string]any `json:"shortfall,omitempty"`
	}
	e := struct {
		Message    string     `json:"message"`
		Locations  []location `json:"locations,omitempty"`
		Path       []any      `json:"path,omitempty"`
		Extensions extensions `json:"extensions"`
	}{Message: f.message, Path: path, Extensions: extensions{
		f.code, f.status, f.kind, f.policy, f.decision, f.approval,
		f.limit, f.errors, f.shortfall,
	}}
	if f.line > 0 {
		e.Locations = []location{{f.line, f.col}}
	}
	return e
}

func noCapacity(status int) *fault {
	return &fault{message: textNoCapacity, code: codeNoCapacity, status: status}
}

// problemFault returns a fault with the data of a v2 problem document, without message and code.
func problemFault(r *translate.Response) *fault {
	f := &fault{
		status: r.Status, kind: r.Kind, retryAfter: r.Header.Get("Retry-After"),
		decision: translate.Text(r.Body, "decision"), approval: translate.Text(r.Body, "approval", "id"),
	}
	if translate.Text(r.Body, "budget") != "" {
		f.shortfall = make(map[string]any)
		for _, name := range []string{"budget", "limit", "used", "reserved", "needs", "room_at"} {
			f.shortfall[name] = translate.At(r.Body, name)
		}
	}
	var names []string
	for _, p := range translate.Items(r.Body, "policies") {
		name, ok := p.(string)
		if !ok {
			name = cmp.Or(translate.Text(p, "policy"), translate.Text(p, "name"))
		}
		if name != "" {
			names = append(names, name)
		}
	}
	f.policy = strings.Join(names, ", ")
	return f
}

// refusal converts an unsuccessful v2 response to a fault.
func refusal(r *translate.Response, k legacy.Noun) *fault {
	f, text := problemFault(r), r.Detail()
	switch {
	case r.Status == http.StatusUnauthorized:
		f.message, f.code, f.http = textUnauthorized+": "+text, codeUnauthenticated, http.StatusUnauthorized
	case r.Status == http.StatusPaymentRequired:
		f.message, f.code = cmp.Or(translate.Text(r.Body, "detail"), textFunds), codeFunds
	case r.Status == http.StatusForbidden:
		f.message, f.code, f.errors = legacy.Forbidden(text), codeForbidden, graphqlNames.In(r.Errors())
	case r.Status == http.StatusNotFound && k != "":
		f.message, f.code = notFound(k)
	case r.Status == http.StatusNotFound:
		f.message, f.code = text, codeNotFound
	case r.Status == http.StatusMethodNotAllowed:
		f.message, f.code = text, codeMethod
	case r.Status == http.StatusRequestEntityTooLarge:
		f.message, f.code, f.http = cmp.Or(text, "request body too large"), codeTooLarge, http.StatusRequestEntityTooLarge
	case r.Status == http.StatusUnprocessableEntity:
		f.message, f.code, f.errors = text, codeBadInput, graphqlNames.In(r.Errors())
		if len(f.errors) > 0 {
			f.message += ": " + f.errors[0]
		}
	case r.Status == http.StatusTooManyRequests:
		f.message, f.code, f.http = textTooMany, codeRateLimited, http.StatusTooManyRequests
	case r.Status >= 400 && r.Status < 500:
		f.message, f.code, f.errors = cmp.Or(text, "bad request"), codeBadInput, graphqlNames.In(r.Errors())
	default:
		f.message, f.code = legacy.Broken(r), codeInternal
	}
	return f
}

func notFound(k legacy.Noun) (message, code string) {
	switch k {
	case legacy.NounTerminated:
		return "pod not found to terminate", codePodNotFound
	case legacy.NounPod:
		return "pod not found", codePodNotFound
	case legacy.NounCluster:
		return "Cluster not found", codeClusterNotFound
	default:
		return string(k) + " not found", codeNotFound
	}
}
