package problem

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// RunContentType is the media type of errors of the run interface.
const RunContentType = "application/json"

// extras holds the members that the gateway adds to errors of the run interface.
type extras struct {
	Errors   []string    `json:"errors,omitempty"`
	Policies []Violation `json:"policies,omitempty"`
	Windows  []string    `json:"violated-policies,omitempty"`
	Approval *Approval   `json:"approval,omitempty"`
	Decision string      `json:"decision,omitempty"`
	Contact  string      `json:"contact,omitempty"`
	Page     string      `json:"decision_url,omitempty"`
}

func (p *Problem) extras() extras {
	return extras{p.Errors, p.Policies, p.Windows, p.Approval, p.Decision, p.Contact, p.Page}
}

// RunJSON encodes the problem in the form of the run interface (reference platform-v2, section 12.7): the member error
// holds the detail.
func (p *Problem) RunJSON() []byte {
	return encode(struct {
		Error string `json:"error"`
		extras
	}{p.Detail, p.extras()})
}

// chat is an error in the form that clients of language models expect.
type chat struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// ChatJSON encodes the problem in the form that clients of language models expect. Its code is the kind of the problem.
func (p *Problem) ChatJSON() []byte {
	c := chat{Message: p.Detail, Type: ChatType(p.Status)}
	if p.Kind != "" {
		code := string(p.Kind)
		c.Code = &code
	}
	return encode(struct {
		Error chat `json:"error"`
		extras
	}{c, p.extras()})
}

// ChatType returns the type of a chat error for an HTTP status.
func ChatType(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusPaymentRequired:
		return "insufficient_quota"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	}
	if status < http.StatusInternalServerError {
		return "invalid_request_error"
	}
	return "server_error"
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil { // structs of strings always encode
		panic(fmt.Sprintf("problem: encode: %v", err))
	}
	return b
}
