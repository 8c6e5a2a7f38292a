package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
)

// lingering runs work that outlives the request it was begun for. Unlike a
// sync.WaitGroup it may be given work during a wait.
type lingering struct {
	logger *slog.Logger

	mu      sync.Mutex // guards what follows
	running int
	idle    chan struct{} // closed when nothing runs; nil when there is no wait
}

// Go runs f. A panic in it costs no more than its own work.
func (l *lingering) Go(f func()) {
	l.mu.Lock()
	l.running++
	l.mu.Unlock()
	go func() {
		defer l.done()
		defer func() {
			if v := recover(); v != nil {
				l.logger.Error("work that outlived its request failed", "error", fmt.Sprint(v), "exception.stacktrace", string(debug.Stack()))
			}
		}()
		f()
	}()
}

func (l *lingering) done() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running--; l.running == 0 && l.idle != nil {
		close(l.idle)
		l.idle = nil
	}
}

// wait waits until nothing runs, or ctx ends; it reports which.
func (l *lingering) wait(ctx context.Context) (idle bool) {
	l.mu.Lock()
	if l.running == 0 {
		l.mu.Unlock()
		return true
	}
	if l.idle == nil {
		l.idle = make(chan struct{})
	}
	done := l.idle
	l.mu.Unlock()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}
