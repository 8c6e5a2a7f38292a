package problem

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// RunContentType is the media type of errors of the run interface.
const RunContentType = "application/json"

// RunJSON returns p in the form of error responses of the run interface (reference platform-v2, section 12.7). The member "error" contains
// the detail.
func (p *Problem) RunJSON() []byte {
	return encode(struct {
		Error string `json:"error"`
		Extensions
	}{p.Detail, p.Extensions})
}

// chat is an error in the form that clients of language models expect.
type chat struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// ChatJSON returns p in the form of error responses that clients of language models expect. The member "code" contains the kind.
func (p *Problem) ChatJSON() []byte {
	c := chat{Message: p.Detail, Type: ChatType(p.Status)}
	if p.Kind != "" {
		code := string(p.Kind)
		c.Code = &code
	}
	return encode(struct {
		Error chat `json:"error"`
		Extensions
	}{c, p.Extensions})
}

// ChatType returns the value of the member "type" in the result of [Problem.ChatJSON], which depends on the HTTP status.
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
