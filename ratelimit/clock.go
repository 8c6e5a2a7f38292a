package ratelimit

import "time"

// Clock tells the time. Only differences are used, so that the gateway's wall
// clock may be wrong; the times it returns must carry a monotonic reading or
// come from one source.
type Clock interface {
	Now() time.Time
}

// systemClock is the clock of the machine.
type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }
