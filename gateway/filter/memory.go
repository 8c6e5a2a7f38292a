package filter

import "golang.org/x/sync/semaphore"

// Memory bounds the bytes of large bodies that are under way at once, over all
// exchanges.
type Memory struct{ w *semaphore.Weighted }

// NewMemory returns a Memory of so many bytes.
func NewMemory(bytes int64) *Memory { return &Memory{semaphore.NewWeighted(bytes)} }

// reserve takes memory for the exchange, until its answer has come. It reports
// whether there was enough.
func (ex *Exchange) reserve(m *Memory, bytes int64) bool {
	if !m.w.TryAcquire(bytes) {
		return false
	}
	ex.reserved += bytes
	return true
}
