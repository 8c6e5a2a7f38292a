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
	// maxPanics is the number of panics within window, of all tasks together, after which the process stops.
	maxPanics = 5
	window    = time.Minute
	// The pause before a restart starts at firstPause and doubles up to lastPause. It is reset for a task that has run for window.
	firstPause, lastPause = time.Second, 10 * time.Second
)

// Supervisor restarts tasks that panic. It is safe for concurrent use.
type Supervisor struct {
	logger *slog.Logger
	panics metric.Int64Counter
	fatal  chan error // receives an error when the process must stop because of too many panics

	mu     sync.Mutex // guards recent
	recent []time.Time
}

// NewSupervisor returns a Supervisor. panics counts the panics by task name.
func NewSupervisor(logger *slog.Logger, panics metric.Int64Counter) *Supervisor {
	return &Supervisor{logger: logger, panics: panics, fatal: make(chan error, 1)}
}

// Run runs a task until the task returns, and returns the task's error. If the task panics, Run cancels the context of the task and
// restarts the task after a pause. If ctx ends during the pause, Run returns nil. Run returns an error if the tasks of s have panicked five
// times within a minute.
func (s *Supervisor) Run(ctx context.Context, name string, task func(ctx context.Context) error) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		began := time.Now()
		err := attempt(ctx, task)
		p, panicked := err.(*panics.Error) //nolint:errorlint // a wrapped panic is an ordinary error
		if !panicked {
			return err
		}
		if time.Since(began) > window {
			pause = firstPause
		}
		s.panics.Add(ctx, 1, metric.WithAttributes(attribute.String("task", name)))
		if s.tooMany() {
			err := fmt.Errorf("tasks panicked %d times within %v, most recently %q: %w", maxPanics, window, name, p)
			s.logger.ErrorContext(ctx, "tasks panicked too often, stopping the process",
				"task", name, "error", p.Error(), "exception.stacktrace", p.Stack)
			select {
			case s.fatal <- err:
			default: // another task has already stopped the process
			}
			return err
		}
		s.logger.ErrorContext(ctx, "task panicked, restarting it", "task", name, "error", p.Error(), "pause", pause.String(),
			"exception.stacktrace", p.Stack)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}

// attempt runs a task once with its own context. It returns a panic as an error.
func attempt(ctx context.Context, task func(context.Context) error) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if p := panics.Catch(func() { err = task(ctx) }); p != nil {
		return p
	}
	return err
}

// tooMany records a panic and reports whether the limit is reached.
func (s *Supervisor) tooMany() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recent = append(s.recent, time.Now())
	s.recent = s.recent[max(0, len(s.recent)-maxPanics):]
	return len(s.recent) == maxPanics && time.Since(s.recent[0]) < window
}
