package tasks

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
)

// Group runs work that outlives the request it was begun for. Unlike a
// sync.WaitGroup it may be given work during a wait.
type Group struct {
	// Logger is told of panics.
	Logger *slog.Logger

	mu      sync.Mutex // guards what follows
	running int
	idle    chan struct{} // closed when nothing runs; nil when there is no wait
}

// Go runs f. A panic in it costs no more than its own work.
func (g *Group) Go(f func()) {
	g.mu.Lock()
	g.running++
	g.mu.Unlock()
	go func() {
		defer g.done()
		defer func() {
			if v := recover(); v != nil {
				g.Logger.Error("work that outlived its request failed", "error", fmt.Sprint(v), "exception.stacktrace", string(debug.Stack()))
			}
		}()
		f()
	}()
}

func (g *Group) done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running--; g.running == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// UntilDone waits until nothing runs, or ctx ends; it reports which.
func (g *Group) Wait(ctx context.Context) (idle bool) {
	g.mu.Lock()
	if g.running == 0 {
		g.mu.Unlock()
		return true
	}
	if g.idle == nil {
		g.idle = make(chan struct{})
	}
	done := g.idle
	g.mu.Unlock()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}
