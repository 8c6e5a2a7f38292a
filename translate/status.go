package translate

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Values of desiredStatus in the legacy dialects.
const (
	Running    = "RUNNING"
	Exited     = "EXITED"
	Terminated = "TERMINATED"
)

// DesiredStatus maps the status of a v2 pod to the desiredStatus of the legacy dialects. A starting pod is RUNNING. A failed pod is EXITED,
// so that clients stop waiting. An unknown status maps to RUNNING, because the pod may cost money.
func DesiredStatus(status string) string {
	switch status {
	case "EXITED", "ERROR":
		return Exited
	case "TERMINATED":
		return Terminated
	}
	return Running
}

// IsCapacity reports whether the detail of a 400 describes a capacity shortage. v2 has no error code for a shortage, so IsCapacity searches
// for known phrases. Any other text means an invalid request.
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

// Detail returns the detail of a v2 problem, or its title if it has no detail.
func (r *Response) Detail() string {
	if r == nil {
		return ""
	}
	return cmp.Or(Text(r.Body, "detail"), Text(r.Body, "title"))
}

// Errors returns the member "errors" of a v2 problem.
func (r *Response) Errors() []string {
	return Texts(r.Body, "errors")
}

// OK reports whether the status is 2xx.
func (r *Response) OK() bool { return r != nil && r.Status >= 200 && r.Status < 300 }

// RetryAfter returns the delay in the Retry-After header (RFC 9110, section 10.2.3), limited to between one second and one day. An invalid
// header counts as one second, so that it cannot cause a busy loop.
func (r *Response) RetryAfter() time.Duration {
	seconds, err := strconv.Atoi(r.Header.Get("Retry-After"))
	if err != nil {
		return time.Second
	}
	return time.Duration(min(max(seconds, 1), 24*60*60)) * time.Second
}

// broken reports whether there is no response or a server error, neither of which says anything about the request.
func broken(r *Response, err error) bool {
	return err != nil || r == nil || r.Status >= http.StatusInternalServerError
}
