package tasks

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Items added within the pause, or while others are written, are written at once; one
// writer runs, as long as there is anything to write; a writer that panics ends alone.
func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got [][]int
		b := Batcher[int]{Pause: time.Second, Go: func(f func()) {
			go func() {
				defer func() { _ = recover() }()
				f()
			}()
		}}
		b.Write = func(batch []int) {
			got = append(got, batch)
			if batch[0] == 1 {
				b.Add(3)
			}
			if batch[0] == 4 {
				panic("a fault")
			}
		}
		for _, n := range []int{1, 2, 0, 4, 0, 5} {
			if n == 0 {
				time.Sleep(3 * time.Second)
				synctest.Wait()
				continue
			}
			b.Add(n)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if diff := cmp.Diff([][]int{{1, 2}, {3}, {4}, {5}}, got); diff != "" {
			t.Errorf("written (-want +got):\n%s", diff)
		}
	})
}

// A full Batches takes nothing more; waiting items are written in batches, without a pause
// between full ones.
func TestBatchesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		most := 0
		b := Batcher[int]{Pause: time.Second, Go: func(f func()) { go f() }, Write: func(batch []int) { most = max(most, len(batch)) }}
		begin, taken := time.Now(), 0
		for i := range MaxQueued + 5 {
			if b.Add(i) {
				taken++
			}
		}
		synctest.Wait()
		if time.Sleep(time.Second); taken != MaxQueued {
			t.Errorf("%d taken, want %d", taken, MaxQueued)
		}
		synctest.Wait()
		if left := len(b.waiting); most != maxBatch || left > 0 || time.Since(begin) != time.Second {
			t.Errorf("%d at once and %d left after %v, want %d and none after a pause", most, left, time.Since(begin), maxBatch)
		}
	})
}
