package sandbox

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// Garbage that lay there when the watch began makes no room once it is collected, and none that is made since counts.
func TestWithinMemory(t *testing.T) {
	const bound = 64 << 20
	defer debug.SetGCPercent(debug.SetGCPercent(2000)) // garbage lies long
	junk := make([]byte, 4*bound)
	runtime.GC()
	runtime.KeepAlive(junk)
	ctx, stop := WithinMemory(t.Context(), bound)
	defer stop()
	runtime.GC()
	for range 8 { // each with time to be seen
		runtime.KeepAlive(make([]byte, bound/2))
		select {
		case <-ctx.Done():
			t.Fatalf("garbage was made: the context ended by %v", context.Cause(ctx))
		case <-time.After(8 * lookEvery):
		}
	}
	var taken []byte
	for range 4 { // each with time to be seen
		taken = append(taken, make([]byte, bound/2)...)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
			continue
		}
		break
	}
	if !errors.Is(context.Cause(ctx), ErrMemory) {
		t.Errorf("%d bytes were taken after garbage had been collected: the context ended by %v, want %v", len(taken), context.Cause(ctx), ErrMemory)
	}
	runtime.KeepAlive(taken)
}

// Memory that others took after the last collection, and keep, does not count.
func TestWithinMemoryOfBefore(t *testing.T) {
	const bound = 64 << 20
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // nothing else collects
	runtime.GC()
	kept := make([]byte, 3*bound)
	ctx, stop := WithinMemory(t.Context(), bound)
	defer stop()
	for range 4 { // each with time to be seen
		runtime.KeepAlive(make([]byte, bound/2))
		select {
		case <-ctx.Done():
			t.Fatalf("garbage was made: the context ended by %v", context.Cause(ctx))
		case <-time.After(8 * lookEvery):
		}
	}
	runtime.KeepAlive(kept)
}
