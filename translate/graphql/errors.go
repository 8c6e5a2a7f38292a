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
	extensions
	// http is the HTTP status of the response for faults that clients detect by the status (401, 413, 429); 0 means 200.
	http int
	// retryAfter is the Retry-After header of the v2 response.
	retryAfter string
	line, col  int
	// cause is logged and never sent to callers.
	cause error
}

// extensions is the member "extensions" of an entry.
type extensions struct {
	Code string `json:"code"`
	// Status is the status of the v2 response that caused the fault, or 0 if there was no call.
	Status int `json:"status,omitempty"`
	// Kind is the kind of the gateway's refusal.
	Kind   string `json:"kind,omitempty"`
	Policy string `json:"policy,omitempty"`
	// Decision is the id under which a policy refusal can be explained.
	Decision string `json:"decision,omitempty"`
	// Approval is the id of the approval request that the refusal created.
	Approval string `json:"approval,omitempty"`
	// Limit names the exceeded limit of Limits.
	Limit  string   `json:"limit,omitempty"`
	Errors []string `json:"errors,omitempty"`
	// Shortfall describes the exhausted budget with members of the v2 refusal, including a limit that differs from Limit above.
	Shortfall map[string]any `json:"shortfall,omitempty"`
}

func newFault(message, code string, status int) *fault {
	return &fault{message: message, extensions: extensions{Code: code, Status: status}}
}

func (f *fault) Error() string {
	if f.cause != nil {
		return f.message + ": " + f.cause.Error()
	}
	return f.message
}

func (f *fault) Unwrap() error { return f.cause }

// badInput returns the fault for invalid input, detected before any v2 call.
func badInput(message string) *fault { return newFault(message, codeBadInput, 0) }

func internal(cause error) *fault {
	f := newFault(textRetryLater, codeInternal, http.StatusInternalServerError)
	f.cause = cause
	return f
}

// asFault converts any error to a fault. An unknown error becomes an internal one, whose message is not sent to callers.
func asFault(err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	if e, ok := errors.AsType[*engine.Error](err); ok {
		f := &fault{message: e.Message, extensions: extensions{Code: e.Code, Limit: e.Limit}, line: e.Line, col: e.Column}
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
		return newFault(u.Error(), codeInternal, http.StatusGatewayTimeout)
	}
	if r, ok := errors.AsType[*legacy.RefusedError](err); ok {
		if r.Err != nil || r.Response == nil || r.Response.OK() { // no response, or an unreadable one
			return unanswered(r)
		}
		f := refusal(r.Response, r.Noun)
		if r.MayBeShortage && r.Response.Status == http.StatusBadRequest && translate.IsCapacity(r.Response.Detail()) {
			f.Code = codeNoCapacity
		}
		return f
	}
	f := internal(err)
	if errors.Is(err, context.DeadlineExceeded) {
		f.Status = http.StatusGatewayTimeout
	}
	return f
}

// unanswered returns the fault for a v2 call without a usable response. If the call was not made, the gateway is at fault, otherwise the
// platform.
func unanswered(err *legacy.RefusedError) *fault {
	if err.Err == nil {
		f := internal(err)
		f.Status = http.StatusBadGateway
		return f
	}
	f := asFault(err.Err)
	if f.Status == http.StatusInternalServerError {
		f.Status = http.StatusBadGateway
	}
	return f
}

// entry returns the member of "errors" for the fault (specification, section 7.1.2). path is the path of the value that is null because of
// the fault.
func (f *fault) entry(path []any) any {
	type location struct {
		Line   int `json:"line"`
		Column int `json:"column"`
	}
	e := struct {
		Message    string     `json:"message"`
		Locations  []location `json:"locations,omitempty"`
		Path       []any      `json:"path,omitempty"`
		Extensions extensions `json:"extensions"`
	}{Message: f.message, Path: path, Extensions: f.extensions}
	if f.line > 0 {
		e.Locations = []location{{f.line, f.col}}
	}
	return e
}

func noCapacity(status int) *fault {
	return newFault(textNoCapacity, codeNoCapacity, status)
}

// problemFault returns a fault with the data of a v2 problem document, without message and code.
func problemFault(r *translate.Response) *fault {
	f := &fault{retryAfter: r.Header.Get("Retry-After"), extensions: extensions{
		Status: r.Status, Kind: r.Kind, Decision: translate.Text(r.Body, "decision"), Approval: translate.Text(r.Body, "approval", "id"),
	}}
	if translate.Text(r.Body, "budget") != "" {
		f.Shortfall = make(map[string]any)
		for _, name := range []string{"budget", "limit", "used", "reserved", "needs", "room_at"} {
			f.Shortfall[name] = translate.At(r.Body, name)
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
	f.Policy = strings.Join(names, ", ")
	return f
}

// refusal converts an unsuccessful v2 response to a fault.
func refusal(r *translate.Response, k legacy.Noun) *fault {
	f, text := problemFault(r), graphqlNames.In([]string{r.Detail()})[0]
	switch {
	case r.Status == http.StatusUnauthorized:
		f.message, f.Code, f.http = textUnauthorized+": "+text, codeUnauthenticated, http.StatusUnauthorized
	case r.Status == http.StatusPaymentRequired:
		f.message, f.Code = cmp.Or(translate.Text(r.Body, "detail"), textFunds), codeFunds
	case r.Status == http.StatusForbidden:
		f.message, f.Code, f.Errors = legacy.Forbidden(text), codeForbidden, graphqlNames.In(r.Errors())
	case r.Status == http.StatusNotFound && k != "":
		f.message, f.Code = notFound(k)
	case r.Status == http.StatusNotFound:
		f.message, f.Code = text, codeNotFound
	case r.Status == http.StatusMethodNotAllowed:
		f.message, f.Code = text, codeMethod
	case r.Status == http.StatusRequestEntityTooLarge:
		f.message, f.Code, f.http = cmp.Or(text, "request body too large"), codeTooLarge, http.StatusRequestEntityTooLarge
	case r.Status == http.StatusUnprocessableEntity:
		f.message, f.Code, f.Errors = text, codeBadInput, graphqlNames.In(r.Errors())
		if len(f.Errors) > 0 {
			f.message += ": " + f.Errors[0]
		}
	case r.Status == http.StatusTooManyRequests:
		f.message, f.Code, f.http = textTooMany, codeRateLimited, http.StatusTooManyRequests
	case r.Status >= 400 && r.Status < 500:
		f.message, f.Code, f.Errors = cmp.Or(text, "bad request"), codeBadInput, graphqlNames.In(r.Errors())
	default:
		f.message, f.Code = legacy.Broken(r), codeInternal
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
