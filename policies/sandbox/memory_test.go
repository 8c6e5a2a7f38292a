package sandbox

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"
)

// Garbage that lay there when the watch began makes no room once it is collected.
func TestWithinMemory(t *testing.T) {
	const bound = 64 << 20
	junk := make([]byte, 4*bound)
	runtime.KeepAlive(junk)
	ctx, stop := WithinMemory(t.Context(), bound)
	defer stop()
	junk = nil
	runtime.GC()
	for range 4 { // each with time to be seen
		junk = append(junk, make([]byte, bound/2)...)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
			continue
		}
		break
	}
	if !errors.Is(context.Cause(ctx), ErrMemory) {
		t.Errorf("%d bytes were taken after garbage had been collected: the context ended by %v, want %v", len(junk), context.Cause(ctx), ErrMemory)
	}
	runtime.KeepAlive(junk)
}
