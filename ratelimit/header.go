package ratelimit

import (
	"net/http"
	"strconv"
	"time"
)

// headerSyntax contains the parameter names of the RateLimit fields. The IETF draft may still change (an open proposal renames r and t);
// support for a new draft needs only another function like [Draft11]. Clients can rely on Retry-After, which is not part of the draft.
type headerSyntax struct {
	// Quota and Window are parameters of RateLimit-Policy.
	Quota, Window string
	// Remaining and Reset are parameters of RateLimit.
	Remaining, Reset string
}

// Draft11 returns the syntax of draft-ietf-httpapi-ratelimit-headers-11, which the platform also uses.
func Draft11() headerSyntax {
	return headerSyntax{Quota: "q", Window: "w", Remaining: "r", Reset: "t"}
}

// Header fields in Go's canonical form, which avoids the conversion.
const (
	headerRateLimit  = "Ratelimit"
	headerPolicy     = "Ratelimit-Policy"
	headerRetryAfter = "Retry-After"
)

// WriteHeaders sets RateLimit and RateLimit-Policy in the syntax of [Draft11], and Retry-After if d is a refusal. It sets nothing for
// an exempt caller.
func (d *Decision) WriteHeaders(h http.Header) { Draft11().Write(h, d) }

// Write sets the rate limit headers for d in h. Except Retry-After, they are lists (RFC 9651) with one member for each window. Times are
// whole seconds, rounded up, so that clients do not retry too early.
func (y headerSyntax) Write(h http.Header, d *Decision) {
	if len(d.Windows) > 0 {
		var buf [192]byte
		b := buf[:0]
		for i := range d.Windows {
			b = y.appendPolicy(b, i, &d.Windows[i])
		}
		policy := string(b)
		b = buf[:0]
		for i := range d.Windows {
			b = y.appendState(b, i, &d.Windows[i])
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

func (y headerSyntax) appendPolicy(b []byte, i int, w *Window) []byte {
	b = appendName(b, i, w.Name)
	b = appendParam(b, y.Quota, w.Limit)
	return appendParam(b, y.Window, int64(w.Size/time.Second))
}

func (y headerSyntax) appendState(b []byte, i int, w *Window) []byte {
	b = appendName(b, i, w.Name)
	b = appendParam(b, y.Remaining, w.Remaining)
	return appendParam(b, y.Reset, seconds(w.Reset))
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
