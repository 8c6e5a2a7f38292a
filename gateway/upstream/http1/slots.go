package http1

import (
	"slices"
	"sync"
)

// slots counts connections, from before they are opened until they are closed.
type slots struct {
	mu      sync.Mutex // guards what follows
	open    int
	waiting []chan struct{} // who has waited longest is first
}

// acquire takes a slot and returns nil, or, if all limit of them are taken, a channel that
// is closed when it is worth another try, or leave must be called. A limit of 0 is none.
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

// release gives a slot back.
func (s *slots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	s.next()
}

// signal says that a connection is idle.
func (s *slots) signal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next()
}

// cancel ends a wait. A turn that has come is for the next.
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
