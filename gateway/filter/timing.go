package filter

import (
	"math"
	"time"
)

// stageClock measures the stages of an exchange on the monotonic clock. The zero value has not started.
type stageClock struct {
	begin time.Time
	// marks are the times since begin at which stages were entered, in microseconds. Stages beyond the array have none.
	marks [stagesOfRequest]uint32
	// total is the time from begin until the response was complete, 0 before that.
	total time.Duration
}

// mark notes that the stage with an index is entered now.
func (c *stageClock) mark(stage int) {
	now := time.Now()
	if stage == 0 {
		c.begin = now
	}
	if stage < len(c.marks) {
		c.marks[stage] = uint32(min(math.MaxUint32, max(0, now.Sub(c.begin).Microseconds())))
	}
}

// stop notes that the response is complete.
func (c *stageClock) stop() {
	if !c.begin.IsZero() {
		c.total = time.Since(c.begin)
	}
}

// StageTime is when a stage began, counted from the first stage, and how long it took until the next one began. The last stage of an
// exchange includes the response phase.
type StageTime struct{ Start, Took time.Duration }

// StageTimes returns the times of the stages of an exchange that has ended, in the order of [Exchange.Stages]. It returns nil for an
// exchange that has not ended. Stages that were not measured are left out at the end.
func (ex *Exchange) StageTimes() []StageTime {
	c := &ex.Progress.clock
	if c.total == 0 {
		return nil
	}
	out := make([]StageTime, 0, len(ex.Progress.stages))
	for i := range min(len(ex.Progress.stages), len(c.marks)) {
		start, next := time.Duration(c.marks[i])*time.Microsecond, c.total
		if i+1 < min(len(ex.Progress.stages), len(c.marks)) {
			next = time.Duration(c.marks[i+1]) * time.Microsecond
		}
		out = append(out, StageTime{start, max(0, next-start)})
	}
	return out
}

// Duration returns the time from the first stage until the response was complete, 0 for an exchange that has not ended.
func (ex *Exchange) Duration() time.Duration { return ex.Progress.clock.total }
