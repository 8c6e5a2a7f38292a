package translate

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Request is one call of the platform's v2 API in parsed form. The gateway builds the HTTP request from it, so a
// translator can neither choose the host nor add headers.
type Request struct {
	// Operation is the operationId of the v2 API description, for example "createPod".
	Operation string
	// Params holds the decoded path parameters by name.
	Params map[string]string
	// Query holds the decoded query parameters; nil means none.
	Query url.Values
	// Body is the JSON body: map[string]any, []any, string, bool, json.Number, or nil for no body.
	Body any
	// Origin is the template whose settings were copied into the body because v2 cannot express the caller's use of it;
	// nil means none. Policies treat the call as if its body named the template.
	Origin *Origin
	// Read permits the decoder to return Records for objects in the response, because the translator only reads it.
	Read bool
	// FingerprintText identifies retries of a create; "" means the body.
	FingerprintText string
	// StopAt and TerminateAt are when the gateway stops and terminates the created pod; zero means never. A gateway that
	// does not support them refuses the call.
	StopAt, TerminateAt time.Time
	// OnLateSuccess is called if a create succeeds after its request has been answered; nil means no callback.
	OnLateSuccess func(ctx context.Context, made *Response)
}

// Origin is a template whose settings were copied into a body that does not name the template.
type Origin struct {
	// TemplateID is the id that the caller named.
	TemplateID string
	// Record is the template if the platform does not have it: the virtual template of an endpoint, which exists only in the legacy dialects.
	// Nil means that the template can be read from the platform.
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
	// FromEarlierRequest reports that this call was not sent: the resource was created by an earlier, equal request whose caller did not get
	// the response.
	FromEarlierRequest bool
	// Refused reports that the gateway refused the call and did not contact the platform.
	Refused bool
	// Kind names the gateway's refusal; it is "" for a response of the platform.
	Kind string
}

// Caller makes v2 calls for a translator; the gateway implements it. (In other types, such as Incoming, the caller is the client.) Every
// call passes through the whole inner filter chain (schema, policies, budgets), so that a legacy request cannot bypass a rule. A refusal is
// a Response. An error means that there is no response, because the context ended or the platform's response was lost (ErrAmbiguous). If
// the response to a create was lost, Call looks for the resource and returns it, also to a retry; it returns an UnfinishedError if the
// result remains unknown.
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
	// Account is a stable identifier of the caller's platform account. Stored records are separate for each account.
	Account string
	// Caller is a stable identifier of the caller within the account, empty without a credential.
	Caller string
	// CatalogAllowed reports whether a caller without a credential may read the catalog.
	CatalogAllowed bool
}

// Outgoing is the response in the caller's dialect.
type Outgoing struct {
	Status int
	Header http.Header
	// ContentType is empty without a body.
	ContentType string
	// Body is the encoded body, or nil.
	Body []byte
	// Failed reports that the body is an error, whatever the status.
	Failed bool
	// V2 lists the v2 operations that the legacy call made, in order of first use, for example ["createPod"].
	V2 []string
	// Operations names the operations of the legacy call. It is nil for a route with a single operation, and for a GraphQL request whose
	// operations were not determined.
	Operations []string
	// Warnings holds notices for the caller, one printable line each. LostFields holds the fields that v2 has no
	// equivalent for.
	Warnings, LostFields []string
}
