package filter

import (
	"context"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// Memory bounds the bytes of bodies that are under way at once, over all exchanges.
type Memory struct {
	w    *semaphore.Weighted
	size int64
}

// NewMemory returns a Memory of so many bytes.
func NewMemory(bytes int64) *Memory { return &Memory{semaphore.NewWeighted(bytes), bytes} }

// memoryUse is the memory that the body of one exchange holds.
type memoryUse struct {
	memory *Memory
	bytes  atomic.Int64
	// factor is the memory that a list takes, in lengths of its text.
	factor int64
	// waiting is held by the goroutine that waits for memory while there is none yet.
	waiting sync.Mutex
}

// grow takes more memory. It reports whether there was enough; nil has no bound.
func (h *memoryUse) grow(bytes int64) bool {
	if h == nil {
		return true
	}
	if !h.memory.w.TryAcquire(bytes) {
		return false
	}
	h.bytes.Add(bytes)
	return true
}

// acquire takes more memory, all there can be for more than that, and returns how much. It waits until there is
// enough, unless it has some already: those that have some would wait for each other for ever.
func (h *memoryUse) wait(ctx context.Context, bytes int64) (taken int64, err error) {
	h.waiting.Lock()
	defer h.waiting.Unlock()
	if bytes = min(bytes, h.memory.size); h.bytes.Load() > 0 {
		if !h.grow(bytes) {
			bytes = 0
		}
		return bytes, nil
	}
	if err := h.memory.w.Acquire(ctx, bytes); err != nil {
		return 0, err
	}
	h.bytes.Add(bytes)
	return bytes, nil
}

// release gives some of it back, at most all; less than none is nothing.
func (h *memoryUse) release(bytes int64) {
	for {
		has := h.bytes.Load()
		less := max(0, min(bytes, has))
		if h.bytes.CompareAndSwap(has, has-less) {
			h.memory.w.Release(less)
			return
		}
	}
}

// enforcenkTo gives all of it back but so much.
func (h *memoryUse) shrinkTo(bytes int64) { h.release(h.bytes.Load() - bytes) }

// releaseAll gives all of it back. It may be called again, from any goroutine.
func (h *memoryUse) releaseAll() { h.memory.w.Release(h.bytes.Swap(0)) }
