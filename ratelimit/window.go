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
	// Generation changes when an operator resets the scope. It is the time of the last reset on the store's clock, in Unix milliseconds, or 0
	// if the scope was never reset.
	Generation int64
	// Index is the number of each window, counted from the Unix epoch.
	Index [Windows]int64
	// Count is the number of units charged to each window, including leases.
	Count [Windows]int64
}

// End returns the end of window i of s, in Unix milliseconds of the store's clock.
func (s *State) End(i int) int64 { return (s.Index[i] + 1) * windowMillis(i) }

// UntilEnd returns the time from now to the end of window i, or 0 if the window has ended. now is in Unix milliseconds of the store's clock.
func (s *State) UntilEnd(i int, now int64) time.Duration {
	return time.Duration(max(0, s.End(i)-now)) * time.Millisecond
}

// Advance replaces the windows that have ended by now (Unix milliseconds) with the current windows, which are empty. It keeps a window
// later than now: a clock that steps back must not reopen a window that was already counted.
func (s *State) Advance(now int64) {
	for i := range Windows {
		if current := now / windowMillis(i); s.Index[i] < current {
			s.Index[i], s.Count[i] = current, 0
		}
	}
}
