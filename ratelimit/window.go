package ratelimit

import "time"

// Windows is the number of windows per scope. Arrays with one entry per window are indexed by 0 (minute), 1 (hour) and 2
// (day).
const Windows = 3

// WindowName returns the name of window i in headers: "minute", "hour" or "day". It panics if i is not a window.
func WindowName(i int) string {
	return [Windows]string{"minute", "hour", "day"}[i]
}

// WindowSize returns the length of window i.
func WindowSize(i int) time.Duration {
	return [Windows]time.Duration{time.Minute, time.Hour, 24 * time.Hour}[i]
}

// windowMillis returns WindowSize in milliseconds, the unit used by stores.
func windowMillis(i int) int64 {
	return [Windows]int64{60_000, 3_600_000, 86_400_000}[i]
}

// State is the state of one scope in a store at one instant.
type State struct {
	// Generation distinguishes counts before and after a reset by an operator: it is the store's clock, in Unix milliseconds, at the last
	// reset of the scope, or 0 if it was never reset.
	Generation int64
	// Index is the number of each window since the Unix epoch.
	Index [Windows]int64
	// Count is the number of units charged to each window, including leases.
	Count [Windows]int64
}

// End returns the end of window i of s, in Unix milliseconds of the store's clock.
func (s *State) End(i int) int64 { return (s.Index[i] + 1) * windowMillis(i) }

// Reset returns the time from now (Unix milliseconds of the store's clock) to the end of window i, never negative.
func (s *State) Reset(i int, now int64) time.Duration {
	return time.Duration(max(0, s.End(i)-now)) * time.Millisecond
}

// Advance replaces windows that have ended by now (Unix milliseconds) with the current, empty ones. A window later than now is kept: a
// clock that steps back must not reopen a window already counted.
func (s *State) Advance(now int64) {
	for i := range Windows {
		if current := now / windowMillis(i); s.Index[i] < current {
			s.Index[i], s.Count[i] = current, 0
		}
	}
}
