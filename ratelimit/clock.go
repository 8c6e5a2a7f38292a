package ratelimit

import "time"

// Clock returns the current time. Only differences are used, for timeouts and leases, so the wall clock may be wrong; windows follow the
// store's clock, and the times must carry a monotonic reading or come from one source.
type Clock interface {
	Now() time.Time
}

// systemClock is the system clock.
type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }
