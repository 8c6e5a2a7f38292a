package legacy

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// NoticePeriod is how long a brownout is announced before it begins.
const NoticePeriod = 7 * 24 * time.Hour

// maxAhead limits how far ahead the end of a brownout is computed. A brownout without an end is announced as if it ended about then.
const maxAhead = 366 * day

// Span is a continuous period of refused calls. It includes the time From and excludes the time Until.
type Span struct{ From, Until time.Time }

// Schedule holds the brownouts of one dialect. It is immutable and safe for concurrent use; a nil Schedule is empty.
type Schedule []settings.Brownout

// NewSchedule returns the schedule of a dialect. If no entry applies to the dialect, it returns nil. The entries must be valid.
func NewSchedule(entries []settings.Brownout, dialect settings.Dialect) (s Schedule) {
	for _, e := range entries {
		if slices.Contains(e.Dialects, dialect) {
			s = append(s, e)
		}
	}
	return s
}

// Active returns the time span of the current brownout, and the message of the first configured brownout that includes now. The message may
// be empty. ok is false if no brownout includes now. Brownouts that overlap or adjoin form one span, so that calls are served again when
// the span ends. Active ignores brownouts that begin more than NoticePeriod after now.
func (s Schedule) Active(now time.Time) (span Span, message string, ok bool) {
	spans := s.Spans(now)
	if len(spans) == 0 || spans[0].From.After(now) {
		return Span{}, "", false
	}
	for i := range s {
		e, in := &s[i], false
		windows(e, now, now.Add(1), func(Span) { in = true })
		if in {
			return spans[0], e.Message, true
		}
	}
	return spans[0], "", true
}

// Spans returns the current span and the spans that begin within NoticePeriod, sorted by time and without overlaps.
func (s Schedule) Spans(now time.Time) []Span {
	var all []Span
	for i := range s {
		windows(&s[i], now, now.Add(NoticePeriod), func(w Span) { all = append(all, w) })
	}
	slices.SortFunc(all, func(a, b Span) int { return cmp.Or(a.From.Compare(b.From), a.Until.Compare(b.Until)) })
	merged := all[:0]
	for _, w := range all {
		last := len(merged) - 1
		if last < 0 || w.From.After(merged[last].Until) {
			merged = append(merged, w)
		} else if w.Until.After(merged[last].Until) {
			merged[last].Until = w.Until
		}
	}
	if n := len(merged); n > 0 {
		s.extend(&merged[n-1].Until, now.Add(maxAhead))
	}
	return merged
}

// extend moves the end of a span to the end of the windows that overlap or adjoin it, and stops at limit.
func (s Schedule) extend(until *time.Time, limit time.Time) {
	for last := (time.Time{}); until.After(last) && until.Before(limit); {
		last = *until
		for i := range s {
			windows(&s[i], last, last.Add(1), func(w Span) {
				if w.Until.After(*until) {
					*until = w.Until
				}
			})
		}
	}
}

// announced is the maximum number of spans in one header.
const announced = 8

// Announce returns the spans of the next NoticePeriod, at most 8, as a header value: comma-separated intervals in the form "start/end",
// with RFC 3339 times. It returns "" if there are none.
func (s Schedule) Announce(now time.Time) string {
	spans := s.Spans(now)
	var list []string
	for _, w := range spans[:min(len(spans), announced)] {
		list = append(list, w.From.UTC().Format(time.RFC3339)+"/"+w.Until.UTC().Format(time.RFC3339))
	}
	return strings.Join(list, ", ")
}

// day is the length of a UTC day.
const day = 24 * time.Hour

// windows calls visit for the windows of an entry that overlap the time from begin to end.
func windows(c *settings.Brownout, begin, end time.Time, visit func(Span)) {
	meets := func(w Span) bool { return w.Until.After(begin) && w.From.Before(end) && w.Until.After(w.From) }
	if (c.Daily == settings.Hours{}) || c.Daily.End-c.Daily.Begin == day && len(c.Weekdays) == 0 { // without interruptions
		w := Span{c.From, c.Until}
		if w.From.IsZero() {
			w.From = begin.UTC().Truncate(day)
		}
		if w.Until.IsZero() {
			w.Until = end.UTC().Truncate(day).Add(maxAhead)
		}
		if meets(w) {
			visit(w)
		}
		return
	}
	// A range that began yesterday may still be active.
	for midnight := begin.UTC().Truncate(day).Add(-day); midnight.Before(end); midnight = midnight.Add(day) {
		if !on(c, midnight.Weekday()) {
			continue
		}
		w := Span{From: midnight.Add(c.Daily.Begin), Until: midnight.Add(c.Daily.End)}
		if c.Daily.End <= c.Daily.Begin {
			w.Until = w.Until.Add(day)
		}
		if w.From.Before(c.From) {
			w.From = c.From
		}
		if !c.Until.IsZero() && w.Until.After(c.Until) {
			w.Until = c.Until
		}
		if meets(w) {
			visit(w)
		}
	}
}

// on reports whether a daily window begins on d.
func on(c *settings.Brownout, d time.Weekday) bool {
	return len(c.Weekdays) == 0 || slices.Contains(c.Weekdays, settings.Weekday(settings.Weekday("").Values()[d]))
}
