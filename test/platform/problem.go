package platform

import (
	"net/http"
	"strconv"
)

// problem is a refusal: an application/problem+json document with the members
// title, status, detail and, where there is a list, errors.
type problem struct {
	status     int
	detail     string
	errors     []string
	retryAfter int    // seconds; written with a 429
	allow      string // written with a 405
}

func (p *problem) Error() string { return strconv.Itoa(p.status) + ": " + p.detail }

// title returns the reason phrase the platform puts in front of a status.
func title(status int) string {
	if status == http.StatusRequestEntityTooLarge {
		return "Content Too Large" // RFC 9110, section 15.5.14
	}
	if text := http.StatusText(status); text != "" {
		return text
	}
	return "Error"
}

// record is the document.
func (p *problem) record() object {
	o := object{"title", title(p.status), "status", p.status, "detail", p.detail}
	if len(p.errors) > 0 {
		o = append(o, "errors", p.errors)
	}
	return o
}

func refuse(status int, detail string, errors ...string) *problem {
	return &problem{status: status, detail: detail, errors: errors}
}

func badRequest(detail string, errors ...string) *problem {
	return refuse(http.StatusBadRequest, detail, errors...)
}

func notFound(what string) *problem {
	return refuse(http.StatusNotFound, what+" not found")
}

func conflict(detail string) *problem { return refuse(http.StatusConflict, detail) }

// invalid is the answer to a body that breaks the operation's contract, one
// located entry in errors per violation.
func invalid(errors ...string) *problem {
	return refuse(http.StatusUnprocessableEntity, "Request validation failed.", errors...)
}

func tooLarge(detail string) *problem {
	return refuse(http.StatusRequestEntityTooLarge, detail)
}
