package problem

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// ContentType is the media type of an encoded Problem (RFC 9457, section 3).
const ContentType = "application/problem+json"

// Violation is a violation of one policy.
type Violation struct {
	// Policy is the name of the violated policy.
	Policy string `json:"policy"`
	// Message describes the violation for people.
	Message string `json:"message"`
	// Field is the JSON Pointer (RFC 6901) to the offending member of the v2 body. It is empty if the violation concerns
	// the whole request.
	Field string `json:"field,omitempty"`
}

// Problem is an error response to the caller (RFC 9457). It implements error, so that filters can return it. Use [Kind.New] to create a
// Problem; the zero value is not valid.
type Problem struct { //nolint:errname // the field's own word (RFC 9457)
	// Kind is the kind of the problem. It determines Title and Status.
	Kind Kind `json:"-"`
	// Title, Status and Detail are members of all error responses of the platform.
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	// Shortfall describes the budget that is too low for the request. It is nil if the budget is not the reason.
	*Shortfall
	Extensions
	// Header holds additional response headers, such as Allow and Retry-After.
	Header http.Header `json:"-"`

	cause error
}

// Extensions holds the members of a Problem that error responses of the run interface have too.
type Extensions struct {
	// Errors is the platform's optional list of messages with locations.
	Errors []string `json:"errors,omitempty"`
	// Policies lists the policies of the organisation that the request violates.
	Policies []Violation `json:"policies,omitempty"`
	// Windows lists the names of the rate limit windows in which the quota is used up.
	Windows []string `json:"violated-policies,omitempty"`
	// Approval is the approval request for the refused call, or nil.
	Approval *Approval `json:"approval,omitempty"`
	// Decision is the decision ID, with which the refusal can be explained.
	Decision string `json:"decision,omitempty"`
	Contact
}

// Contact tells refused callers where to get help. The configuration contains its settings, and refusals in every dialect contain its
// members. The zero value adds nothing to a refusal.
type Contact struct {
	// Text names a person, a team or a channel. The detail of a refusal contains it too.
	Text string `yaml:"contact" reload:"live" json:"contact,omitempty" doc:"contact in refusals, such as '#gpu-platform', with a link to the decision if public_url and console are set. An organisation can override the contact"`
	// Page is the URL of the page about the decision, or "".
	Page string `yaml:"-" json:"decision_url,omitempty"`
}

// AddTo adds the members of c to a decoded JSON object.
func (c Contact) AddTo(object map[string]any) {
	if err := json.Unmarshal(encode(c), &object); err != nil { // encode returns a JSON object
		panic(fmt.Sprintf("problem: decode: %v", err))
	}
}

// Shortfall describes a budget that a request would exceed. The amounts of an hourly budget are in USD per hour. The amounts of other
// budgets are in USD or, for budgets of GPUs, pods and other resources, counts.
type Shortfall struct {
	Budget   string      `json:"budget"`
	Limit    json.Number `json:"limit"`
	Used     json.Number `json:"used"`
	Reserved json.Number `json:"reserved"`
	Needs    json.Number `json:"needs"`
	// RoomAt is the earliest time at which the budget will be sufficient. It is nil if waiting does not help.
	RoomAt *time.Time `json:"room_at"`
}

// Approval describes the approval request that the gateway created for a refused call.
type Approval struct {
	ID string `json:"id"`
	// State is "pending" or "denied".
	State string `json:"state"`
	// Until is the expiry time of the approval request.
	Until time.Time `json:"until"`
}

// New returns a Problem of kind k. detail describes the error for the caller.
func (k Kind) New(detail string) *Problem {
	return &Problem{Kind: k, Title: k.title(), Status: k.Status(), Detail: detail}
}

// Newf is like New, with a formatted detail.
func (k Kind) Newf(format string, args ...any) *Problem {
	return k.New(fmt.Sprintf(format, args...))
}

// Because sets the internal cause and returns p. The cause is logged, but not sent to the caller.
func (p *Problem) Because(err error) *Problem {
	p.cause = err
	return p
}

// With sets a response header and returns p.
func (p *Problem) With(name, value string) *Problem {
	if p.Header == nil {
		p.Header = make(http.Header, 1)
	}
	p.Header.Set(name, value)
	return p
}

// Error implements error. The text contains the detail and the internal cause.
func (p *Problem) Error() string {
	if p.cause != nil {
		return fmt.Sprintf("%s: %s: %v", p.Kind, p.Detail, p.cause)
	}
	return fmt.Sprintf("%s: %s", p.Kind, p.Detail)
}

// Unwrap returns the internal cause, or nil.
func (p *Problem) Unwrap() error { return p.cause }

// JSON returns p as the body of an application/problem+json response.
func (p *Problem) JSON() []byte { return encode(p) }
