package filter

import (
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// Memory bounds the bytes of bodies that are under way at once, over all exchanges.
type Memory struct{ w *semaphore.Weighted }

// NewMemory returns a Memory of so many bytes.
func NewMemory(bytes int64) *Memory { return &Memory{semaphore.NewWeighted(bytes)} }

// held is the memory that the body of one exchange holds.
type held struct {
	memory *Memory
	bytes  atomic.Int64
}

// grow takes more memory. It reports whether there was enough; nil has no bound.
func (h *held) grow(bytes int64) bool {
	if h == nil {
		return true
	}
	if !h.memory.w.TryAcquire(bytes) {
		return false
	}
	h.bytes.Add(bytes)
	return true
}

// free gives all of it back. It may be called again, from any goroutine.
func (h *held) free() { h.memory.w.Release(h.bytes.Swap(0)) }
