package translate

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Request is one call on the platform's v2 API, in parsed form. The gateway
// turns it into a wire request itself, so a translator can neither choose a
// host nor smuggle a header.
type Request struct {
	// Operation is the operationId of the v2 API description, e.g. "createPod".
	Operation string
	// Params holds the path parameters by name, decoded.
	Params map[string]string
	// Query holds the query parameters, decoded; nil when there are none.
	Query url.Values
	// Body is the JSON body: map[string]any, []any, string, bool, json.Number
	// or nil for "no body".
	Body any
	// Origin is the template whose settings were written into the body because
	// v2 has no word for the caller's use of it; nil for none. Policies
	// judge it as if the body named it.
	Origin *Origin
	// RetryRead says that the answer is read and then forgotten: objects in it may be Records.
	Read bool
	// FingerprintText is the common part of repeats of a create; "" means its body.
	FingerprintText string
	// StopAt and TerminateAt are when the gateway stops and terminates the pod that is made; zero is never. A
	// gateway that cannot keep them refuses the call.
	StopAt, TerminateAt time.Time
	// OnLateSuccess is called when a create succeeds after its request was answered;
	// nil ignores it.
	OnLateSuccess func(ctx context.Context, made *Response)
}

// Origin is a template that a body was made from without naming it.
type Origin struct {
	// TemplateID is the id the caller named.
	TemplateID string
	// Record is the template when the platform does not know it: one that stands
	// for something else of the account's own. nil means that the platform does.
	Record any
}

// Response is the answer to a Request: the platform's, or the gateway's own
// refusal, which has the same shape (RFC 9457 problem details).
type Response struct {
	Status int
	// Header holds the response headers that may be shown to callers.
	Header http.Header
	// Body is the decoded JSON body, nil when the answer had none. Numbers are
	// json.Number.
	Body any
	// FromEarlierRequest says that an earlier request has made the resource, whose caller was not
	// told.
	FromEarlierRequest bool
	// Refused says that the gateway refused the call, and the platform has seen
	// nothing of it.
	Refused bool
	// Kind names the gateway's refusal, "" for an answer of the platform.
	Kind string
}

// Caller performs v2 calls. Every call passes the whole inner chain (schema,
// policy, budget), so a legacy request cannot dodge a rule. A refusal is a
// Response; an error means that no answer could be had at all: the context
// ended, or the platform's answer was lost (ErrAmbiguous). The resource of a create
// whose answer was lost is looked for, and is the answer, also of its repeat; the
// error is an UnfinishedError when its outcome is not known.
//
// Call may be used from several goroutines at once.
type Caller interface {
	Call(ctx context.Context, r *Request) (*Response, error)
}

// Incoming is a legacy request as the gateway parsed it.
type Incoming struct {
	// Params holds the path parameters by name, decoded.
	Params map[string]string
	// Query holds the query parameters, decoded, repeated ones included.
	Query url.Values
	// Header holds the request headers a dialect may look at (User-Agent,
	// Content-Type); credentials are gone by now.
	Header http.Header
	// Body is the strictly decoded JSON body, nil when HasBody is false.
	Body any
	// HasBody tells an absent body from the JSON value null.
	HasBody bool
	// Account is a stable identifier of the platform account behind the
	// caller; it partitions a translator's memory.
	Account string
	// Caller is a stable identifier of the caller within the account, empty for
	// one without a credential.
	Caller string
	// CatalogAllowed tells that one without a credential may read the catalog.
	CatalogAllowed bool
}

// Outgoing is the answer in the caller's own dialect.
type Outgoing struct {
	Status int
	Header http.Header
	// ContentType is empty when there is no body.
	ContentType string
	// Body is the encoded body, nil for none.
	Body []byte
	// Failed marks a body that reports an error, under any status.
	Failed bool
	// V2 lists the v2 operations the legacy call became, in order of the first
	// call of each, e.g. ["createPod"].
	V2 []string
	// Operations names the operations of the call, nil where the route says it or it was not
	// found out.
	Operations []string
	// Warnings holds notices for the caller, one printable line each, and Lost the
	// fields that v2 has no place for.
	Warnings, LostFields []string
}
