package filter

import (
	"context"
	"errors"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/overload"
)

// TestHeldWaits: who has none waits for memory, who has some does not, and more than there
// takes all that an organisation can hold.
func TestHeldWaits(t *testing.T) {
	left, leave := context.WithCancel(t.Context())
	leave()
	memory := overload.NewPool(12, 1) // an organisation can hold 9
	a, b := &memoryUse{pool: memory}, &memoryUse{pool: memory}
	for _, bytes := range []int64{6, 6} { // the second finds too little, and does not wait
		if _, err := a.wait(t.Context(), bytes); err != nil {
			t.Errorf("wait for %d of 9 = %v", bytes, err)
		}
	}
	if _, err := b.wait(left, 5); !errors.Is(err, context.Canceled) {
		t.Errorf("wait for 5 while 6 of 9 are held = %v, want %v", err, context.Canceled)
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
	if a.grow(1) {
		t.Error("there is memory left beside one who has all")
	}
	if other := (&memoryUse{pool: memory, org: "other"}); !other.grow(3) {
		t.Error("there is no memory left for another organisation")
	}
	b.releaseAll()
	if _, err := a.wait(t.Context(), 9); err != nil {
		t.Errorf("wait for what was given back = %v", err)
	}
}
