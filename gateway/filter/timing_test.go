package filter

import (
	"testing"
	"time"
)

// Each stage lasts until the next one begins, and the last one until the response is complete.
func TestStageTimes(t *testing.T) {
	ex := newExchange(stagesOfRequest)
	if ex.StageTimes() != nil {
		t.Error("an exchange that has not ended has times")
	}
	ex.Progress.stages = []string{"size", "match", "dispatch"}
	ex.Progress.clock = stageClock{begin: time.Now(), total: 5 * time.Millisecond}
	ex.Progress.clock.marks[1], ex.Progress.clock.marks[2] = 1000, 1500
	want := []StageTime{{0, time.Millisecond}, {time.Millisecond, 500 * time.Microsecond}, {1500 * time.Microsecond, 3500 * time.Microsecond}}
	for i, got := range ex.StageTimes() {
		if got != want[i] {
			t.Errorf("stage %d: %+v, want %+v", i, got, want[i])
		}
	}
	if ex.Duration() != 5*time.Millisecond {
		t.Errorf("the exchange took %s", ex.Duration())
	}
}

// Stages beyond the room of the clock are not measured.
func TestStageTimesBeyondTheRoom(t *testing.T) {
	ex := newExchange(stagesOfRequest)
	for range stagesOfRequest + 3 {
		ex.enterStage("again")
	}
	ex.Progress.clock.stop()
	if n := len(ex.StageTimes()); n != stagesOfRequest {
		t.Errorf("%d stages are measured, want %d", n, stagesOfRequest)
	}
}
