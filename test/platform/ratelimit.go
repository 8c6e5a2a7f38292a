package platform

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// window counts the requests of one account in one fixed window of UTC time.
type window struct {
	name  string
	width int64 // seconds
	quota int
	start int64 // Unix seconds at which the running window began
	used  int
}

func newWindows(q Quota) [3]window {
	q = q.withDefaults()
	return [3]window{
		{name: "minute", width: 60, quota: q.Minute},
		{name: "hour", width: 3600, quota: q.Hour},
		{name: "day", width: 86400, quota: q.Day},
	}
}

// takeLocked counts one request at now, unless a window is full: then nothing
// is counted and the answer is the 429 for the fullest-lasting one.
func (a *account) takeLocked(now time.Time) *problem {
	if a.exempt {
		return nil
	}
	var full *window
	for i := range a.windows {
		w := &a.windows[i]
		if start := now.Unix() / w.width * w.width; start != w.start {
			w.start, w.used = start, 0
		}
		if w.used >= w.quota {
			full = w
		}
	}
	if full == nil {
		for i := range a.windows {
			a.windows[i].used++
		}
		return nil
	}
	return &problem{
		status:     http.StatusTooManyRequests,
		detail:     "rate limit exceeded for the " + full.name + " window",
		retryAfter: full.left(now),
	}
}

// left is how many whole seconds remain of the window, at least one.
func (w *window) left(now time.Time) int {
	end := time.Unix(w.start+w.width, 0)
	return max(int((end.Sub(now)+time.Second-1)/time.Second), 1)
}

// rateHeadersLocked describes the windows as they stand: structured-field lists
// with one member per window. Both are empty for exempt accounts.
func (a *account) rateHeadersLocked(now time.Time) (limit, policy string) {
	if a.exempt {
		return "", ""
	}
	b := make([]byte, 0, 96)
	for i := range a.windows {
		w := &a.windows[i]
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(append(append(b, '"'), w.name...), `";r=`...)
		b = strconv.AppendInt(b, int64(max(w.quota-w.used, 0)), 10)
		b = append(b, ";t="...)
		b = strconv.AppendInt(b, int64(w.left(now)), 10)
	}
	return string(b), a.policy
}

// policyHeader is the RateLimit-Policy of the windows; it never changes.
func policyHeader(ws [3]window) string {
	var b []byte
	for i, w := range ws {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = fmt.Appendf(b, `"%s";q=%d;w=%d`, w.name, w.quota, w.width)
	}
	return string(b)
}
