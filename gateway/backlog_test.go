package gateway

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What is added within the pause, or while others are written, is written at once; one
// writer runs, as long as there is anything to write; a writer that panics ends alone.
func TestBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got [][]int
		b := backlog[int]{pause: time.Second, late: func(f func()) {
			go func() {
				defer func() { _ = recover() }()
				f()
			}()
		}}
		b.write = func(batch []int) {
			got = append(got, batch)
			if batch[0] == 1 {
				b.add(3)
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
			b.add(n)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if diff := cmp.Diff([][]int{{1, 2}, {3}, {4}, {5}}, got); diff != "" {
			t.Errorf("written (-want +got):\n%s", diff)
		}
	})
}

// A full backlog takes nothing more; what it has is written in batches, without a pause
// between full ones.
func TestBacklogIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		most := 0
		b := backlog[int]{pause: time.Second, late: func(f func()) { go f() }, write: func(batch []int) { most = max(most, len(batch)) }}
		begin, taken := time.Now(), 0
		for i := range maxWaiting + 5 {
			if b.add(i) {
				taken++
			}
		}
		synctest.Wait()
		if time.Sleep(time.Second); taken != maxWaiting {
			t.Errorf("%d taken, want %d", taken, maxWaiting)
		}
		synctest.Wait()
		if left := len(b.waiting); most != writtenBatch || left > 0 || time.Since(begin) != time.Second {
			t.Errorf("%d at once and %d left after %v, want %d and none after a pause", most, left, time.Since(begin), writtenBatch)
		}
	})
}
