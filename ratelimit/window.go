package ratelimit

import "time"

// Windows is the number of windows every scope is counted in. They are indexed
// 0 (minute), 1 (hour) and 2 (day) wherever an array has one entry per window.
const Windows = 3

// WindowName returns the name of window i as the headers spell it: "minute",
// "hour" or "day". It panics if i is not a window.
func WindowName(i int) string {
	return [Windows]string{"minute", "hour", "day"}[i]
}

// WindowSize returns the length of window i.
func WindowSize(i int) time.Duration {
	return [Windows]time.Duration{time.Minute, time.Hour, 24 * time.Hour}[i]
}

// windowMillis is WindowSize in milliseconds, the unit stores report.
func windowMillis(i int) int64 {
	return [Windows]int64{60_000, 3_600_000, 86_400_000}[i]
}

// State is a store's account of one scope at one instant.
type State struct {
	// Generation changes when an operator resets the scope (it is the store's
	// clock at the reset, in Unix milliseconds); 0 if that never happened.
	Generation int64
	// Index is the number of each window since the Unix epoch.
	Index [Windows]int64
	// Count is the number of units charged to that window, leases included.
	Count [Windows]int64
}

// End returns the instant window i of s ends, in Unix milliseconds of the
// store's clock.
func (s *State) End(i int) int64 { return (s.Index[i] + 1) * windowMillis(i) }

// Reset returns the time from now (Unix milliseconds of the store's clock) to
// the end of window i, never negative.
func (s *State) Reset(i int, now int64) time.Duration {
	return time.Duration(max(0, s.End(i)-now)) * time.Millisecond
}

// Advance opens the windows that now (Unix milliseconds) lies in, with nothing
// charged. A window that is later than now stays as it is: a clock that steps
// back must not reopen a window already counted.
func (s *State) Advance(now int64) {
	for i := range Windows {
		if current := now / windowMillis(i); s.Index[i] < current {
			s.Index[i], s.Count[i] = current, 0
		}
	}
}
