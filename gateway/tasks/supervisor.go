package tasks

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

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
	logger *slog.Logger
	panics metric.Int64Counter
	fatal  chan error

	mu     sync.Mutex // guards recent
	recent []time.Time
}

// NewSupervisor returns a Supervisor that counts each panic with the name of its task.
func NewSupervisor(logger *slog.Logger, panics metric.Int64Counter) *Supervisor {
	return &Supervisor{logger: logger, panics: panics, fatal: make(chan error, 1)}
}

// Fatal yields an error when the process is to end: there were too many panics.
func (s *Supervisor) Fatal() <-chan error { return s.fatal }

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
		s.panics.Add(ctx, 1, metric.WithAttributes(attribute.String("task", name)))
		if s.tooMany() {
			err := fmt.Errorf("tasks panicked %d times within %v, the last one was %q: %w", maxPanics, window, name, p)
			s.logger.ErrorContext(ctx, "the process ends: too many panics", "task", name, "error", p.Error(), "exception.stacktrace", p.Stack)
			select {
			case s.fatal <- err:
			default: // another task has ended the process
			}
			return err
		}
		s.logger.ErrorContext(ctx, "a task panicked and will be restarted", "task", name, "error", p.Error(), "pause", pause.String(), "exception.stacktrace", p.Stack)
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
