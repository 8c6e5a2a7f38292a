package tasks

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/config/panics"
)

const (
	// maxPanics is how many panics of all tasks within window end the process.
	maxPanics = 5
	window    = time.Minute
	// The pause before a restart begins with firstPause and doubles up to lastPause. It begins anew
	// for a task that has run for a window.
	firstPause, lastPause = time.Second, 10 * time.Second
)

// Supervisor restarts tasks that panic. It is safe for concurrent use.
type Supervisor struct {
	// Logger is required.
	Logger *slog.Logger
	// Count is called for each panic with the name of its task. Nil counts nothing.
	Count func(ctx context.Context, task string)
	// Failed receives the error that ends the process, that there were too many panics, unless it is full or nil. Run still returns the error.
	Failed chan error

	mu     sync.Mutex // guards recent
	recent []time.Time
}

// Run runs a task until it returns, and returns its error. After a panic it ends the context of
// the task, whose goroutines end with it, and starts the task again after a pause. It
// returns nil if ctx ends during the pause, and an error after the fifth panic of all tasks of s
// within a minute.
func (s *Supervisor) Run(ctx context.Context, name string, task func(ctx context.Context) error) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		began := time.Now()
		err := attempt(ctx, task)
		p, panicked := err.(*panics.Error) //nolint:errorlint // a wrapped panic is an error of the task
		if !panicked {
			return err
		}
		if time.Since(began) > window {
			pause = firstPause
		}
		if s.Count != nil {
			s.Count(ctx, name)
		}
		if s.tooMany() {
			err := fmt.Errorf("tasks panicked %d times within %v, the last one was %q: %w", maxPanics, window, name, p)
			s.Logger.ErrorContext(ctx, "the process ends: too many panics", "task", name, "error", p.Error(), "exception.stacktrace", p.Stack)
			select {
			case s.Failed <- err:
			default:
			}
			return err
		}
		s.Logger.ErrorContext(ctx, "a task panicked and will be restarted", "task", name, "error", p.Error(), "pause", pause.String(), "exception.stacktrace", p.Stack)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}

// attempt runs a task once with a context of its own. A panic is the error.
func attempt(ctx context.Context, task func(context.Context) error) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if p := panics.Catch(func() { err = task(ctx) }); p != nil {
		return p
	}
	return err
}

// tooMany notes a panic and reports whether it was one too many.
func (s *Supervisor) tooMany() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recent = append(s.recent, time.Now())
	s.recent = s.recent[max(0, len(s.recent)-maxPanics):]
	return len(s.recent) == maxPanics && time.Since(s.recent[0]) < window
}
