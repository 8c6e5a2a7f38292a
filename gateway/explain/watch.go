package explain

import (
	"slices"
	"strings"
	"sync/atomic"
)

// watchBuffer is the number of entries buffered for a Watch.
const watchBuffer = 1024

// Watch receives every Entry added to a History.
type Watch struct {
	// C delivers entries in order of completion. Entries are dropped if the reader is too slow.
	C      <-chan Entry
	send   chan<- Entry
	missed atomic.Int64
	from   *History
}

// Watch starts a Watch. The caller must call Stop.
func (h *History) Watch() *Watch {
	c := make(chan Entry, watchBuffer)
	w := &Watch{C: c, send: c, from: h}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watches == nil {
		h.watches = make(map[*Watch]bool)
	}
	h.watches[w] = true
	return w
}

// offer sends p, or drops it if the buffer is full.
func (w *Watch) offer(p Entry) {
	select {
	case w.send <- p:
	default:
		w.missed.Add(1)
	}
}

// TakeMissed returns the number of entries dropped since the last call.
func (w *Watch) TakeMissed() int64 { return w.missed.Swap(0) }

// Stop ends the watch.
func (w *Watch) Stop() {
	w.from.mu.Lock()
	defer w.from.mu.Unlock()
	delete(w.from.watches, w)
}

// names reports whether a policy is listed.
func (s *PolicyNames) names(policy string) bool {
	return slices.Contains(s.Denied, policy) || slices.Contains(s.Warned, policy) || slices.Contains(s.Shadowed, policy) ||
		slices.ContainsFunc(s.Changed, func(change string) bool { return strings.HasPrefix(change, policy+": ") })
}
