package http1

import (
	"slices"
	"sync"
)

// slots counts connections. A connection counts from before it is opened until it is closed.
type slots struct {
	mu      sync.Mutex // guards the fields below
	open    int
	waiting []chan struct{} // longest wait first
}

// acquire takes a slot and returns nil. If all slots are taken, it returns a channel that is closed when the caller should try again; a
// caller that stops waiting must call cancel. limit is the number of slots; 0 means no limit.
func (s *slots) acquire(limit int) (turn chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if limit <= 0 || s.open < limit {
		s.open++
		return nil
	}
	turn = make(chan struct{})
	s.waiting = append(s.waiting, turn)
	return turn
}

// release returns a slot.
func (s *slots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	s.next()
}

// signal wakes the first waiter because a connection is idle.
func (s *slots) signal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next()
}

// cancel ends a wait. If the waiter was already woken, it wakes the next one.
func (s *slots) cancel(turn chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiting, turn)
	if i < 0 {
		s.next()
		return
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
}

func (s *slots) next() {
	if len(s.waiting) > 0 {
		close(s.waiting[0])
		s.waiting = slices.Delete(s.waiting, 0, 1)
	}
}
