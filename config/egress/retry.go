package egress

import (
	"net/http"
	"strconv"
	"time"
)

// maxRetryAfter limits the pauses that servers request.
const maxRetryAfter = time.Hour

// RetryAfter returns the pause that a response requests in Retry-After (RFC 9110, section 10.2.3), at most one hour. It returns 0 if the
// header is missing or invalid.
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
