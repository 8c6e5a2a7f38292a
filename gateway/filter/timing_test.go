package filter

import (
	"testing"
	"time"
)

// Each stage lasts until the next one begins, and the last one until the response is complete.
func TestStageTime(t *testing.T) {
	ex := newExchange(stagesOfRequest)
	ex.Progress.stages = []string{"size", "match", "dispatch"}
	ex.Progress.clock.begin = time.Now()
	ex.Progress.clock.marks[1], ex.Progress.clock.marks[2] = 1000, 1500
	if _, measured := ex.StageTime(0); measured {
		t.Error("a stage of an exchange that has not ended has a time")
	}
	ex.Progress.clock.total = 5 * time.Millisecond
	want := []StageTime{{0, time.Millisecond}, {time.Millisecond, 500 * time.Microsecond}, {1500 * time.Microsecond, 3500 * time.Microsecond}}
	for i := range want {
		if got, measured := ex.StageTime(i); got != want[i] || !measured {
			t.Errorf("stage %d: %+v, %t, want %+v", i, got, measured, want[i])
		}
	}
	if ex.Duration() != 5*time.Millisecond {
		t.Errorf("the exchange took %s", ex.Duration())
	}
}

// Stages beyond the room of the clock are not measured.
func TestStageTimeBeyondTheRoom(t *testing.T) {
	ex := newExchange(stagesOfRequest)
	for range stagesOfRequest + 3 {
		ex.enterStage("again")
	}
	ex.Progress.clock.stop()
	_, last := ex.StageTime(stagesOfRequest - 1)
	_, next := ex.StageTime(stagesOfRequest)
	if !last || next {
		t.Errorf("stages %d and %d are measured: %t and %t", stagesOfRequest-1, stagesOfRequest, last, next)
	}
}
