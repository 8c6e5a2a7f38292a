package tasks

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
)

// Group runs work that may continue after its request has ended. Unlike a sync.WaitGroup, it accepts new work during Wait.
type Group struct {
	// Logger logs panics.
	Logger *slog.Logger

	mu      sync.Mutex // guards the fields below
	running int
	idle    chan struct{} // closed when no work is running; nil if nobody waits
}

// Go calls f in a new goroutine. If f panics, the panic is logged.
func (g *Group) Go(f func()) {
	g.mu.Lock()
	g.running++
	g.mu.Unlock()
	go func() {
		defer g.done()
		defer func() {
			if v := recover(); v != nil {
				g.Logger.Error("background work panicked", "error", fmt.Sprint(v), "exception.stacktrace", string(debug.Stack()))
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

// Wait waits until no work is running, and then returns true. It returns false if ctx ends first.
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
