package translate

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Request is one call of the platform's v2 API in parsed form. The gateway builds the HTTP request, so a translator can neither choose the
// host nor add headers.
type Request struct {
	// Operation is the operationId of the v2 API description, for example "createPod".
	Operation string
	// Params holds the decoded path parameters by name.
	Params map[string]string
	// Query holds the decoded query parameters; nil means none.
	Query url.Values
	// Body is the JSON body: map[string]any, []any, string, bool, json.Number, or nil for no body.
	Body any
	// Origin is the template whose settings were copied into the body, or nil. Settings are copied if v2 cannot express how the caller uses
	// the template. Policies treat the call as if its body named the template.
	Origin *Origin
	// Read reports that the translator only reads the response. The decoder may then return Records instead of maps.
	Read bool
	// FingerprintText identifies repeats of a call that creates a resource. If it is "", the body identifies them.
	FingerprintText string
	// StopAt and TerminateAt are the times when the gateway stops and terminates the created pod; zero means never. A gateway that does not
	// support them refuses the call.
	StopAt, TerminateAt time.Time
	// OnLateSuccess is called if the resource is created after the legacy request has been answered. It may be nil.
	OnLateSuccess func(ctx context.Context, made *Response)
}

// Origin is a template whose settings were copied into a body that does not name the template.
type Origin struct {
	// TemplateID is the id of the template in the caller's request.
	TemplateID string
	// Record is the template if it exists only in the legacy dialects: the virtual template of an endpoint. Nil means that the template can be
	// read from the platform.
	Record any
}

// Response is the response to a Request, from the platform or from the gateway. The gateway's refusals have the same form
// (RFC 9457 problem details).
type Response struct {
	Status int
	// Header holds the response headers that callers may see.
	Header http.Header
	// Body is the decoded JSON body, or nil. Numbers are json.Number.
	Body any
	// FromEarlierRequest reports that this call was not sent. An earlier, equal request created the resource, and its caller did not get the
	// response.
	FromEarlierRequest bool
	// Refused reports that the gateway refused the call without contacting the platform.
	Refused bool
	// Kind is the kind of a refusal by the gateway, such as "key_reused". It is "" for a response of the platform.
	Kind string
	// Hidden reports that the caller may not access a resource that the call names. A 404 then does not mean that the resource is missing.
	Hidden bool
}

// Caller makes v2 calls for a translator. The gateway implements it. (Elsewhere in this package, the caller is the client of the legacy
// API.) Every call passes through the whole inner filter chain (schema, policies, budgets), so that a legacy request cannot bypass a rule.
//
// A refusal is a Response. Call returns an error if there is no response, because the context ended or the platform's response was lost
// (ErrAmbiguous). After a lost response to a call that creates a resource, Call looks for the resource and returns it, also to a repeat of
// the request. If the outcome remains unknown, Call returns an UnfinishedError.
//
// Call is safe for concurrent use.
type Caller interface {
	Call(ctx context.Context, r *Request) (*Response, error)
}

// Incoming is a parsed legacy request.
type Incoming struct {
	// Params holds the decoded path parameters by name.
	Params map[string]string
	// Query holds the decoded query parameters, including repeated ones.
	Query url.Values
	// Header holds the request headers that a dialect may read (User-Agent, Content-Type), without credentials.
	Header http.Header
	// Body is the strictly decoded JSON body, or nil if HasBody is false.
	Body any
	// HasBody distinguishes a JSON null from an absent body.
	HasBody bool
	// Parsed is the form of Body that the dialect has already parsed, or nil. The dialect sets it.
	Parsed any
	// Account is a stable identifier of the caller's account at the platform. Stored values are separate for each account.
	Account string
	// Caller is a stable identifier of the caller within the account. It is empty for a request without a credential.
	Caller string
	// CatalogAllowed reports whether a request without a credential may read the catalog.
	CatalogAllowed bool
}

// Outgoing is the response in the caller's dialect.
type Outgoing struct {
	Status int
	Header http.Header
	// ContentType is the type of Body, or empty without a body.
	ContentType string
	// Body is the encoded body, or nil.
	Body []byte
	// Failed reports that the body describes an error, even if the status is 200.
	Failed bool
	// Reason is the message of the first error in the body, or "".
	Reason string
	// V2 lists the operations of the v2 calls that were made, in order of first use, for example ["createPod"].
	V2 []string
	// Operations lists the operations of the legacy call. It is nil for a route with a single operation, and for a GraphQL request whose
	// operations were not determined.
	Operations []string
	// Warnings holds notices for the caller, one printable line each. LostFields holds the fields without an equivalent in v2.
	Warnings, LostFields []string
}
