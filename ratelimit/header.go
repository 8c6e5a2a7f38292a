package ratelimit

import (
	"net/http"
	"strconv"
	"time"
)

// HeaderSyntax spells the parameters of the RateLimit fields. The IETF draft
// still moves (an open change renames r and t), so the names are a value: a new
// draft is one more function like [Draft11]. Retry-After is not part of it; that
// is the contract clients can rely on.
type HeaderSyntax struct {
	// Quota and Window are parameters of RateLimit-Policy.
	Quota, Window string
	// Remaining and Reset are parameters of RateLimit.
	Remaining, Reset string
}

// Draft11 is the syntax of draft-ietf-httpapi-ratelimit-headers-11, which is
// also the platform's.
func Draft11() HeaderSyntax {
	return HeaderSyntax{Quota: "q", Window: "w", Remaining: "r", Reset: "t"}
}

// The header fields in Go's canonical spelling, so that setting them does not
// have to look for it.
const (
	headerRateLimit  = "Ratelimit"
	headerPolicy     = "Ratelimit-Policy"
	headerRetryAfter = "Retry-After"
)

// WriteHeaders sets RateLimit and RateLimit-Policy as [Draft11] spells them, and
// Retry-After if d is a refusal. It leaves h alone where there is nothing to
// tell: an exempt caller gets no such headers.
func (d *Decision) WriteHeaders(h http.Header) { Draft11().Write(h, d) }

// Write sets the headers for d in h: RFC 9651 lists with one member per window.
// Times are whole seconds, rounded up, so that a client that waits as long as it
// is told does not come too early.
func (y HeaderSyntax) Write(h http.Header, d *Decision) {
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

// RetryAfterSeconds returns RetryAfter as the Retry-After header has it: whole
// seconds, rounded up, at least one.
func (d *Decision) RetryAfterSeconds() int64 { return max(1, seconds(d.RetryAfter)) }

func (y HeaderSyntax) appendPolicy(b []byte, i int, w *Window) []byte {
	b = appendName(b, i, w.Name)
	b = appendParam(b, y.Quota, w.Limit)
	return appendParam(b, y.Window, int64(w.Size/time.Second))
}

func (y HeaderSyntax) appendState(b []byte, i int, w *Window) []byte {
	b = appendName(b, i, w.Name)
	b = appendParam(b, y.Remaining, w.Remaining)
	return appendParam(b, y.Reset, seconds(w.Reset))
}

// appendName appends a String (RFC 9651, section 4.1.6): names are printable ASCII, as
// [CheckID] has them.
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
