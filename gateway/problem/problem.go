package problem

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// ContentType is the media type of an encoded Problem (RFC 9457, section 3).
const ContentType = "application/problem+json"

// Violation is one entry of a policy refusal.
type Violation struct {
	// Policy is the name of the policy that spoke.
	Policy string `json:"policy"`
	// Message describes the violation, for a person.
	Message string `json:"message"`
	// Field is the JSON Pointer (RFC 6901) of the offending member of the v2
	// body, empty when the whole request is meant.
	Field string `json:"field,omitempty"`
}

// Problem is a refusal as the caller sees it. It is an error, so a filter can
// return it; the zero value is not useful, use Kind.New.
type Problem struct { //nolint:errname // the field's own word (RFC 9457)
	// Kind says which of the listed refusals this is.
	Kind Kind `json:"-"`
	// Title, Status and Detail are the members every error of the platform
	// has, Errors its optional list of located messages.
	Title  string   `json:"title"`
	Status int      `json:"status"`
	Detail string   `json:"detail"`
	Errors []string `json:"errors,omitempty"`
	// Policies lists the objections of the organisation's policies.
	Policies []Violation `json:"policies,omitempty"`
	// Windows names the rate limit windows that are full.
	Windows []string `json:"violated-policies,omitempty"`
	// Shortfall is the budget that has no room, nil if it is not about one.
	*Shortfall
	// Approval is how the refusal can be lifted, nil if it cannot.
	Approval *Approval `json:"approval,omitempty"`
	// Decision is the id under which the refusal can be explained.
	Decision string `json:"decision,omitempty"`
	// Contact is the operators' contact line, and Page the address of the decision's page, each "" for none.
	Contact string `json:"contact,omitempty"`
	Page    string `json:"decision_url,omitempty"`
	// Header holds response headers that belong to the refusal, such as Allow
	// and Retry-After.
	Header http.Header `json:"-"`

	cause error
}

// Shortfall is the budget that a refusal is about. Amounts are USD, for a budget per
// hour USD per hour, or counts.
type Shortfall struct {
	Budget   string      `json:"budget"`
	Limit    json.Number `json:"limit"`
	Used     json.Number `json:"used"`
	Reserved json.Number `json:"reserved"`
	Needs    json.Number `json:"needs"`
	// RoomAt is when room may return, nil if no time makes any.
	RoomAt *time.Time `json:"room_at"`
}

// Approval is the request for approval that a refusal has become.
type Approval struct {
	ID string `json:"id"`
	// State is pending or denied.
	State string `json:"state"`
	// Until is when the request ends.
	Until time.Time `json:"until"`
}

// New returns a Problem of kind k with that detail.
func (k Kind) New(detail string) *Problem {
	r := kinds[k]
	return &Problem{Kind: k, Title: r.title, Status: r.status, Detail: detail}
}

// Newf is New with a formatted detail.
func (k Kind) Newf(format string, args ...any) *Problem {
	return k.New(fmt.Sprintf(format, args...))
}

// Because records the inner cause, which is logged and never shown.
func (p *Problem) Because(err error) *Problem {
	p.cause = err
	return p
}

// With sets a response header that belongs to the refusal.
func (p *Problem) With(name, value string) *Problem {
	if p.Header == nil {
		p.Header = make(http.Header, 1)
	}
	p.Header.Set(name, value)
	return p
}

// Error implements error with the caller's text and the inner cause, if any.
func (p *Problem) Error() string {
	if p.cause != nil {
		return fmt.Sprintf("%s: %s: %v", p.Kind, p.Detail, p.cause)
	}
	return fmt.Sprintf("%s: %s", p.Kind, p.Detail)
}

// Unwrap returns the inner cause, nil if there is none.
func (p *Problem) Unwrap() error { return p.cause }

// JSON encodes the problem as an application/problem+json body.
func (p *Problem) JSON() []byte { return encode(p) }
