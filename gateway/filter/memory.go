package filter

import (
	"context"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// Memory is a limit in bytes on the total size of bodies in progress over all exchanges of this gateway.
type Memory struct {
	w    *semaphore.Weighted
	size int64
}

// NewMemory returns a Memory with the given limit in bytes.
func NewMemory(bytes int64) *Memory { return &Memory{semaphore.NewWeighted(bytes), bytes} }

// memoryUse is the memory taken by one exchange.
type memoryUse struct {
	memory *Memory
	bytes  atomic.Int64
	// factor is the memory needed for a list as a multiple of its length.
	factor int64
	// waiting is locked while a goroutine waits for the first memory of the exchange.
	waiting sync.Mutex
}

// grow takes more memory and reports whether enough was available. A nil memoryUse is unlimited.
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

// wait takes more memory, at most the whole limit, and returns the amount taken. It blocks until the memory is available unless the
// exchange already has some, because exchanges that hold memory while waiting could deadlock.
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

// release returns the given amount, at most all. A negative amount is ignored.
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

// shrinkTo returns all memory but the given amount.
func (h *memoryUse) shrinkTo(bytes int64) { h.release(h.bytes.Load() - bytes) }

// releaseAll returns all memory. It may be called repeatedly and from any goroutine.
func (h *memoryUse) releaseAll() { h.memory.w.Release(h.bytes.Swap(0)) }
