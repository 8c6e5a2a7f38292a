package isolate

import (
	"context"
	"slices"
	"sync"
)

// slots limits the children that run at once: [Slots] in total, one for each organisation.
type slots struct {
	mu      sync.Mutex
	taken   []string // organisations holding a slot
	waiting []*waiter
}

// waiter waits for a slot. It holds the slot when ready is closed.
type waiter struct {
	org   string
	ready chan struct{}
}

// try takes a slot if one is free and nothing else waits for it.
func (s *slots) try(org string) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) > 0 || !s.free(org) {
		return nil, false
	}
	s.taken = append(s.taken, org)
	return s.releaser(org), true
}

// wait takes a slot in order of arrival. A waiter whose organisation already holds a slot does not delay those after it.
func (s *slots) wait(ctx context.Context, org string) (release func(), err error) {
	w := &waiter{org: org, ready: make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	s.grant()
	s.mu.Unlock()
	select {
	case <-w.ready:
		return s.releaser(org), nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	i := slices.Index(s.waiting, w)
	if i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	s.mu.Unlock()
	if i < 0 { // granted in the meantime
		s.releaser(org)()
	}
	return nil, context.Cause(ctx)
}

// free reports whether an organisation may take a slot. The caller must hold mu.
func (s *slots) free(org string) bool { return len(s.taken) < Slots && !slices.Contains(s.taken, org) }

// grant gives free slots to waiters. The caller must hold mu.
func (s *slots) grant() {
	s.waiting = slices.DeleteFunc(s.waiting, func(w *waiter) bool {
		if !s.free(w.org) {
			return false
		}
		s.taken = append(s.taken, w.org)
		close(w.ready)
		return true
	})
}

// releaser returns a function that releases the slot of an organisation.
func (s *slots) releaser(org string) func() {
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		i := slices.Index(s.taken, org)
		s.taken = slices.Delete(s.taken, i, i+1)
		s.grant()
	}
}
