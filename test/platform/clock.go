package platform

import (
	"context"
	"sync"
	"time"
)

// Clock is the emulator's time. It follows real time multiplied by a speed, or
// stands still when the speed is zero. It is safe for concurrent use.
type Clock struct {
	mu      sync.Mutex
	speed   float64
	virtual time.Time // the clock's time at the instant real
	real    time.Time
	changed chan struct{} // closed whenever the clock is moved by hand
	waits   map[*time.Time]struct{}
}

// RealClock returns a clock that follows real time.
func RealClock() *Clock { return NewClock(time.Now(), 1) }

// ManualClock returns a clock that stands at start until it is advanced.
func ManualClock(start time.Time) *Clock { return NewClock(start, 0) }

// NewClock returns a clock that stands at start now and from here on runs speed
// times as fast as real time. A speed of zero, or below, is a manual clock.
func NewClock(start time.Time, speed float64) *Clock {
	return &Clock{
		speed:   max(speed, 0),
		virtual: start.Round(0).UTC(),
		real:    time.Now(),
		changed: make(chan struct{}),
		waits:   map[*time.Time]struct{}{},
	}
}

// Now returns the emulator's time, in UTC.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nowLocked()
}

func (c *Clock) nowLocked() time.Time {
	if c.speed == 0 {
		return c.virtual
	}
	return c.virtual.Add(time.Duration(float64(time.Since(c.real)) * c.speed))
}

// Speed returns how many seconds pass on the clock per real second.
func (c *Clock) Speed() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.speed
}

// Advance moves the clock forward by d, at any speed. A negative d is ignored:
// the emulator's time never runs backwards.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rebaseLocked(c.nowLocked().Add(max(d, 0)), c.speed)
}

// AdvanceTo moves the clock forward to t and reports whether it did: a clock that
// is past t stays as it is.
func (c *Clock) AdvanceTo(t time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.Before(c.nowLocked()) {
		return false
	}
	c.rebaseLocked(t.Round(0).UTC(), c.speed)
	return true
}

// SetSpeed changes how fast the clock runs from now on; zero stops it.
func (c *Clock) SetSpeed(speed float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rebaseLocked(c.nowLocked(), max(speed, 0))
}

func (c *Clock) rebaseLocked(now time.Time, speed float64) {
	c.virtual, c.real, c.speed = now, time.Now(), speed
	close(c.changed)
	c.changed = make(chan struct{})
}

// AdvanceToNext moves the clock to the earliest time that is waited for, by a
// call for its result or by a stream for its next line, and reports whether there
// was one.
func (c *Clock) AdvanceToNext() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	var first time.Time
	for t := range c.waits {
		if first.IsZero() || t.Before(first) {
			first = *t
		}
	}
	if !first.After(c.nowLocked()) {
		return false
	}
	c.rebaseLocked(first, c.speed)
	return true
}

// Wait blocks until the clock has reached t, wake is closed, or ctx ends; only
// the last is an error. A nil wake never fires, and the zero time never comes.
func (c *Clock) Wait(ctx context.Context, t time.Time, wake <-chan struct{}) error {
	if t.IsZero() {
		select {
		case <-wake:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	c.mu.Lock()
	c.waits[&t] = struct{}{}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waits, &t)
		c.mu.Unlock()
	}()
	for {
		c.mu.Lock()
		left, speed, changed := t.Sub(c.nowLocked()), c.speed, c.changed
		c.mu.Unlock()
		if left <= 0 {
			return nil
		}
		var due <-chan time.Time
		if speed > 0 {
			timer := time.NewTimer(time.Duration(float64(left)/speed) + time.Microsecond)
			defer timer.Stop()
			due = timer.C
		}
		select {
		case <-due:
		case <-changed:
		case <-wake:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// stamp writes t the way the platform writes times: RFC 3339, UTC, and a
// fraction of up to milliseconds only where there is one.
func stamp(t time.Time) string {
	return t.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano)
}
