package filter

import (
	"math"
	"time"
)

// stageClock measures the stages of an exchange on the monotonic clock. The zero value is a clock that has not started.
type stageClock struct {
	begin time.Time
	// marks holds the time from begin until each stage was entered, in microseconds. Stages beyond the array are not measured.
	marks [stagesOfRequest]uint32
	// total is the time from begin until the response was complete, or 0 before that.
	total time.Duration
}

// mark records that the stage with the given index starts now.
func (c *stageClock) mark(stage int) {
	if stage == 0 {
		c.begin = time.Now()
	} else if stage < len(c.marks) {
		c.marks[stage] = uint32(min(math.MaxUint32, time.Since(c.begin).Microseconds())) // time.Since reads one clock, time.Now two
	}
}

// stop records that the response is complete.
func (c *stageClock) stop() {
	if !c.begin.IsZero() {
		c.total = time.Since(c.begin)
	}
}

// StageTime holds the start of a stage, relative to the first stage, and its duration until the next stage started. The duration of the
// last stage of an exchange includes the response phase.
type StageTime struct{ Start, Took time.Duration }

// StageTime returns the time of the i-th of [Exchange.Stages], or false if the exchange has not ended, or the stage was not measured.
func (ex *Exchange) StageTime(i int) (StageTime, bool) {
	c := &ex.Progress.clock
	measured := min(len(ex.Progress.stages), len(c.marks))
	if c.total == 0 || i >= measured {
		return StageTime{}, false
	}
	start, next := time.Duration(c.marks[i])*time.Microsecond, c.total
	if i+1 < measured {
		next = time.Duration(c.marks[i+1]) * time.Microsecond
	}
	return StageTime{start, max(0, next-start)}, true
}

// Duration returns the time from the first stage until the response was complete, or 0 if the exchange has not ended.
func (ex *Exchange) Duration() time.Duration { return ex.Progress.clock.total }
