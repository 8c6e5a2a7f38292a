package egress

import (
	"net/http"
	"strconv"
	"time"
)

// maxRetryAfter is the longest pause that [RetryAfter] returns.
const maxRetryAfter = time.Hour

// RetryAfter returns the pause in the Retry-After header (RFC 9110, section 10.2.3), but at most one hour. It returns 0 if the header is
// missing or invalid.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if at, err := http.ParseTime(text); err == nil {
		return min(max(0, at.Sub(now)), maxRetryAfter)
	}
	seconds, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxRetryAfter)
}
