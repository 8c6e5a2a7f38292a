package filter

import (
	"context"
	"errors"
	"testing"
)

// TestHeldWaits: who has none waits for memory, who has some does not, and more than there
// is takes all of it.
func TestHeldWaits(t *testing.T) {
	left, leave := context.WithCancel(t.Context())
	leave()
	memory := NewMemory(10)
	a, b := &memoryUse{memory: memory}, &memoryUse{memory: memory}
	for _, bytes := range []int64{6, 6} { // the second finds too little, and does not wait
		if _, err := a.wait(t.Context(), bytes); err != nil {
			t.Errorf("wait for %d of 10 = %v", bytes, err)
		}
	}
	if _, err := b.wait(left, 5); !errors.Is(err, context.Canceled) {
		t.Errorf("wait for 5 while 6 of 10 are held = %v, want %v", err, context.Canceled)
	}
	ended := make(chan error)
	go func() {
		_, err := b.wait(t.Context(), 100)
		ended <- err
	}()
	a.releaseAll()
	if err := <-ended; err != nil {
		t.Errorf("wait for all = %v", err)
	}
	if memory.w.TryAcquire(1) {
		t.Error("there is memory left beside one who has all")
	}
	b.releaseAll()
	if _, err := a.wait(t.Context(), 10); err != nil {
		t.Errorf("wait for what was given back = %v", err)
	}
}
