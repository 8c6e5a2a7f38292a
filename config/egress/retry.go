package egress

import (
	"net/http"
	"strconv"
	"time"
)

// maxRetryAfter bounds the pauses that servers ask for.
const maxRetryAfter = time.Hour

// RetryAfter returns the pause that a response asks for (RFC 9110, section 10.2.3), from 0, for none, to an hour.
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
