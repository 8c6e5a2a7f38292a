package overload

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// TestPoolLeavesRoom: an organisation that takes all it can, and waits for more, does not delay another one.
func TestPoolLeavesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if got := NewPool(8, 7).Most(); got != 7 {
			t.Errorf("an organisation can hold %d, want the 7 of the largest request", got)
		}
		p := NewPool(8, 1)
		for p.TryAcquire("loud", 2) {
		}
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Acquire(ctx, "loud", 6) }()
		synctest.Wait()
		if !p.TryAcquire("small", 1) {
			t.Error("another organisation found no room")
		}
		if err := p.Acquire(t.Context(), "small", 1); err != nil {
			t.Error(err)
		}
		if p.TryAcquire("third", 1) {
			t.Error("more was taken than there is")
		}
		leave()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the wait ended with %v, want %v", err, context.Canceled)
		}
		p.Release("loud", 6)
		if !p.TryAcquire("loud", p.Most()) {
			t.Error("a share that was given back is not available")
		}
	})
}
