package explain

import (
	"slices"
	"strings"
	"sync/atomic"
)

// watchBuffer is how many exchanges wait for a reader of a Watch.
const watchBuffer = 1024

// Watch receives each entry that a History adds from now on.
type Watch struct {
	// C has each in the order of its end. Entries are left out if the reader is too slow.
	C      <-chan Entry
	send   chan<- Entry
	missed atomic.Int64
	stop   func()
}

// Watch begins one. It must be stopped.
func (h *History) Watch() *Watch {
	c := make(chan Entry, watchBuffer)
	w := &Watch{C: c, send: c}
	w.stop = func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watches, w)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watches == nil {
		h.watches = make(map[*Watch]bool)
	}
	h.watches[w] = true
	return w
}

// offer sends p unless too much waits.
func (w *Watch) offer(p Entry) {
	select {
	case w.send <- p:
	default:
		w.missed.Add(1)
	}
}

// TakeMissed returns how many were left out since it was last asked.
func (w *Watch) TakeMissed() int64 { return w.missed.Swap(0) }

// Stop ends the watch.
func (w *Watch) Stop() { w.stop() }

// names reports whether a policy spoke.
func (s *PolicyNames) names(policy string) bool {
	return slices.Contains(s.Denied, policy) || slices.Contains(s.Warned, policy) || slices.Contains(s.Shadowed, policy) ||
		slices.ContainsFunc(s.Changed, func(change string) bool { return strings.HasPrefix(change, policy+": ") })
}
