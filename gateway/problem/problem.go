package problem

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// ContentType is the media type of an encoded Problem (RFC 9457, section 3).
const ContentType = "application/problem+json"

// Violation is one policy violation in a refusal.
type Violation struct {
	// Policy is the name of the violated policy.
	Policy string `json:"policy"`
	// Message describes the violation to a person.
	Message string `json:"message"`
	// Field is the JSON Pointer (RFC 6901) to the offending member of the v2 body. It is empty if the violation concerns
	// the whole request.
	Field string `json:"field,omitempty"`
}

// Problem is a refusal as sent to the caller. It is an error that filters can return. Use Kind.New to create one; the
// zero value is not valid.
type Problem struct { //nolint:errname // the field's own word (RFC 9457)
	// Kind is the kind of refusal.
	Kind Kind `json:"-"`
	// Title, Status and Detail are members of every error of the platform; Errors is its optional list of messages with
	// locations.
	Title  string   `json:"title"`
	Status int      `json:"status"`
	Detail string   `json:"detail"`
	Errors []string `json:"errors,omitempty"`
	// Policies lists the violations of the organisation's policies.
	Policies []Violation `json:"policies,omitempty"`
	// Windows names the rate limit windows that are full.
	Windows []string `json:"violated-policies,omitempty"`
	// Shortfall describes the exhausted budget, or is nil.
	*Shortfall
	// Approval describes the request for approval that can lift the refusal, or is nil.
	Approval *Approval `json:"approval,omitempty"`
	// Decision is the id under which the refusal can be explained.
	Decision string `json:"decision,omitempty"`
	// Contact is the operators' contact text and Page the URL of the decision's page; each may be "".
	Contact string `json:"contact,omitempty"`
	Page    string `json:"decision_url,omitempty"`
	// Header holds response headers of the refusal, such as Allow and Retry-After.
	Header http.Header `json:"-"`

	cause error
}

// Shortfall describes an exhausted budget. Amounts are in USD, in USD per hour for an hourly budget, or counts.
type Shortfall struct {
	Budget   string      `json:"budget"`
	Limit    json.Number `json:"limit"`
	Used     json.Number `json:"used"`
	Reserved json.Number `json:"reserved"`
	Needs    json.Number `json:"needs"`
	// RoomAt is the earliest time with room in the budget, or nil if waiting does not help.
	RoomAt *time.Time `json:"room_at"`
}

// Approval is the approval request that a refusal created.
type Approval struct {
	ID string `json:"id"`
	// State is pending or denied.
	State string `json:"state"`
	// Until is the expiry time of the approval request.
	Until time.Time `json:"until"`
}

// New returns a Problem of kind k with the given detail.
func (k Kind) New(detail string) *Problem {
	return &Problem{Kind: k, Title: k.title(), Status: k.Status(), Detail: detail}
}

// Newf is like New, with a formatted detail.
func (k Kind) Newf(format string, args ...any) *Problem {
	return k.New(fmt.Sprintf(format, args...))
}

// Because sets the internal cause, which is logged but not sent to the caller.
func (p *Problem) Because(err error) *Problem {
	p.cause = err
	return p
}

// With sets a response header of the refusal.
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

// JSON encodes the problem as an application/problem+json body.
func (p *Problem) JSON() []byte { return encode(p) }
