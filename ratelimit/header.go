package ratelimit

import (
	"net/http"
	"strconv"
	"time"
)

// Parameter names in draft-ietf-httpapi-ratelimit-headers-11, which the platform also uses. The draft may still change (an open proposal
// renames r and t). Clients can rely on Retry-After, which is not part of the draft.
const (
	// Parameters of RateLimit-Policy.
	paramQuota, paramWindow = "q", "w"
	// Parameters of RateLimit.
	paramRemaining, paramReset = "r", "t"
)

// Header fields in Go's canonical form, which avoids the conversion.
const (
	headerRateLimit  = "Ratelimit"
	headerPolicy     = "Ratelimit-Policy"
	headerRetryAfter = "Retry-After"
)

// WriteHeaders sets RateLimit and RateLimit-Policy, and Retry-After if d is a refusal. It sets nothing for an exempt caller. Except
// Retry-After, the headers are lists (RFC 9651) with one member for each window. Times are whole seconds, rounded up, so that clients do
// not retry too early.
func (d *Decision) WriteHeaders(h http.Header) {
	if len(d.Windows) > 0 {
		var buf [192]byte
		b := buf[:0]
		for i := range d.Windows {
			b = appendPolicy(b, i, &d.Windows[i])
		}
		policy := string(b)
		b = buf[:0]
		for i := range d.Windows {
			b = appendState(b, i, &d.Windows[i])
		}
		h[headerPolicy] = []string{policy}
		h[headerRateLimit] = []string{string(b)}
	}
	if !d.Allowed {
		h[headerRetryAfter] = []string{strconv.FormatInt(d.RetryAfterSeconds(), 10)}
	}
}

// RetryAfterSeconds returns the value of the Retry-After header: d.RetryAfter in whole seconds, rounded up, and at least 1.
func (d *Decision) RetryAfterSeconds() int64 { return max(1, seconds(d.RetryAfter)) }

func appendPolicy(b []byte, i int, w *Window) []byte {
	b = appendName(b, i, w.Name)
	b = appendParam(b, paramQuota, w.Limit)
	return appendParam(b, paramWindow, int64(w.Size/time.Second))
}

func appendState(b []byte, i int, w *Window) []byte {
	b = appendName(b, i, w.Name)
	b = appendParam(b, paramRemaining, w.Remaining)
	return appendParam(b, paramReset, seconds(w.Reset))
}

// appendName appends a String (RFC 9651, section 4.1.6). Names are printable ASCII, as checked by [CheckID].
func appendName(b []byte, i int, name string) []byte {
	if i > 0 {
		b = append(b, ", "...)
	}
	b = append(b, '"')
	for _, c := range []byte(name) {
		if c == '"' || c == '\\' {
			b = append(b, '\\')
		}
		b = append(b, c)
	}
	return append(b, '"')
}

func appendParam(b []byte, name string, v int64) []byte {
	b = append(b, ';')
	b = append(b, name...)
	b = append(b, '=')
	return strconv.AppendInt(b, v, 10)
}

// seconds rounds d up to whole seconds.
func seconds(d time.Duration) int64 {
	return int64((max(0, d) + time.Second - 1) / time.Second)
}
