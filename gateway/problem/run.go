package problem

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// RunContentType is the media type of the errors of the run interface.
const RunContentType = "application/json"

// extras are the members that errors of the run interface have beside the
// documented one.
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

// RunJSON encodes the problem in the shape of the run interface (reference
// platform-v2, section 12.7): error describes the problem.
func (p *Problem) RunJSON() []byte {
	return encode(struct {
		Error string `json:"error"`
		extras
	}{p.Detail, p.extras()})
}

// Chat is the error that clients of language models read.
type Chat struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// ChatJSON encodes the problem in the shape that clients of language models read.
// Its code is the kind of the problem.
func (p *Problem) ChatJSON() []byte {
	c := Chat{Message: p.Detail, Type: ChatType(p.Status)}
	if p.Kind != "" {
		code := string(p.Kind)
		c.Code = &code
	}
	return encode(struct {
		Error Chat `json:"error"`
		extras
	}{c, p.extras()})
}

// ChatType is the type of a chat error with an HTTP status.
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
