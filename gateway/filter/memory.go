package filter

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/tollgate-dev/tollgate/gateway/overload"
)

// memoryUse is the memory taken by one exchange.
type memoryUse struct {
	pool  *overload.Pool
	org   string
	bytes atomic.Int64
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
	if !h.pool.TryAcquire(h.org, bytes) {
		return false
	}
	h.bytes.Add(bytes)
	return true
}

// wait takes more memory, at most what one organisation can hold, and returns the number of bytes taken. If the exchange has no memory yet,
// wait blocks until the memory is available. Otherwise it does not block, because exchanges that hold memory while they wait could
// deadlock; it then returns 0 if the memory is not available.
func (h *memoryUse) wait(ctx context.Context, bytes int64) (taken int64, err error) {
	h.waiting.Lock()
	defer h.waiting.Unlock()
	if bytes = min(bytes, h.pool.Most()); h.bytes.Load() > 0 {
		if !h.grow(bytes) {
			bytes = 0
		}
		return bytes, nil
	}
	if err := h.pool.Acquire(ctx, h.org, bytes); err != nil {
		return 0, err
	}
	h.bytes.Add(bytes)
	return bytes, nil
}

// release releases the given number of bytes, or all memory of the exchange if it has less. It ignores a negative number.
func (h *memoryUse) release(bytes int64) {
	for {
		has := h.bytes.Load()
		less := max(0, min(bytes, has))
		if h.bytes.CompareAndSwap(has, has-less) {
			h.pool.Release(h.org, less)
			return
		}
	}
}

// shrinkTo releases all memory of the exchange except the given number of bytes.
func (h *memoryUse) shrinkTo(bytes int64) { h.release(h.bytes.Load() - bytes) }

// releaseAll releases all memory of the exchange. It may be called repeatedly and from any goroutine.
func (h *memoryUse) releaseAll() { h.pool.Release(h.org, h.bytes.Swap(0)) }
