package translate

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The words of desiredStatus in the retired interfaces.
const (
	Running    = "RUNNING"
	Exited     = "EXITED"
	Terminated = "TERMINATED"
)

// DesiredStatus maps a v2 pod status to the intent the retired interfaces
// report: a pod on its way up is RUNNING already, a failed one EXITED so that
// waiting clients stop waiting. An unknown word is RUNNING: it may cost money.
func DesiredStatus(status string) string {
	switch status {
	case "EXITED", "ERROR":
		return Exited
	case "TERMINATED":
		return Terminated
	}
	return Running
}

// IsCapacity reports whether the detail of a 400 speaks of a shortage. v2 has no
// code for it; any other wording is a fault of the request.
func IsCapacity(detail string) bool {
	detail = strings.ToLower(detail)
	for _, phrase := range [...]string{
		"no longer any instances", "no instances", "not enough free",
		"does not have the resources", "no available",
	} {
		if strings.Contains(detail, phrase) {
			return true
		}
	}
	return false
}

// Detail is the detail text of a v2 problem, its title when there is none.
func (r *Response) Detail() string {
	if r == nil {
		return ""
	}
	if detail := Text(r.Body, "detail"); detail != "" {
		return detail
	}
	return Text(r.Body, "title")
}

// Errors lists the located messages of a v2 problem.
func (r *Response) Errors() []string {
	if r == nil {
		return nil
	}
	return Texts(r.Body, "errors")
}

// OK reports a 2xx answer.
func (r *Response) OK() bool { return r != nil && r.Status >= 200 && r.Status < 300 }

// RetryAfter is the wait a 429 or 503 asks for, whole seconds (RFC 9110 section
// 10.2.3), at least one second so that a broken header cannot make us spin.
func (r *Response) RetryAfter() time.Duration {
	if r == nil {
		return time.Second
	}
	seconds, err := strconv.Atoi(r.Header.Get("Retry-After"))
	if err != nil {
		return time.Second
	}
	return time.Duration(min(max(seconds, 1), 24*60*60)) * time.Second
}

// broken reports an answer that says nothing about the request: none at all, or
// a server fault.
func broken(r *Response, err error) bool {
	return err != nil || r == nil || r.Status >= http.StatusInternalServerError
}
