package tasks

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Phase is a part of the end of a process.
type Phase int

// The phases, in the order in which they begin.
const (
	// Stopping begins when the process is told to stop or a task fails.
	Stopping Phase = iota
	// Closed begins when the doors close: no request begins any more.
	Closed
	// Drained begins when the tasks that live until Closed have ended.
	Drained
	// Ended begins when all other tasks have ended.
	Ended
)

// Task is work that begins with the process and goes on until a phase of its end.
type Task struct {
	Name string
	// Until is the phase that ends the context of Run.
	Until Phase
	// Run runs until its context ends. An error other than the end of a context stops the process.
	Run func(ctx context.Context) error
	// Drain is called when the phase begins, before the context of Run ends; nil is not called. Its context ends when the time to drain is over.
	Drain func(over context.Context)
}

// UntilDone is the Run of a task that has only a Drain.
func UntilDone(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// NoError makes a Run of a function that returns no error.
func NoError(run func(ctx context.Context)) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		run(ctx)
		return nil
	}
}

// Lifecycle is the tasks of a process.
type Lifecycle struct {
	supervisor *Supervisor
	stopping   context.Context //nolint:containedctx // of the tasks that live until Stopping
	stop       context.CancelFunc
	tasks      []*running

	mu   sync.Mutex // guards errs
	errs []error
}

// running is a task that was begun.
type running struct {
	Task
	end   context.CancelFunc
	ended chan struct{}
}

// NewLifecycle returns a life without tasks, whose phase Stopping begins when ctx ends or a task fails.
func NewLifecycle(ctx context.Context, s *Supervisor) *Lifecycle {
	l := &Lifecycle{supervisor: s}
	l.stopping, l.stop = context.WithCancel(ctx)
	return l
}

// Stopping returns a context that ends when the phase Stopping begins.
func (l *Lifecycle) Stopping() context.Context { return l.stopping }

// Start runs tasks. It must not be called twice. Too many panics of tasks that run under the supervisor beside the list stop the process, too.
func (l *Lifecycle) Start(list []Task) {
	go func() {
		select {
		case err := <-l.supervisor.fatal:
			l.fail(err, Stopping)
		case <-l.stopping.Done():
		}
	}()
	for _, task := range list {
		ctx := l.stopping
		if task.Until > Stopping {
			ctx = context.WithoutCancel(ctx)
		}
		r := &running{Task: task, ended: make(chan struct{})}
		ctx, r.end = context.WithCancel(ctx)
		l.tasks = append(l.tasks, r)
		go l.run(ctx, r)
	}
}

// run runs a task to its end.
func (l *Lifecycle) run(ctx context.Context, r *running) {
	defer close(r.ended)
	if err := l.supervisor.Run(ctx, r.Name, r.Run); err != nil && !errors.Is(err, context.Canceled) {
		l.fail(err, r.Until)
	}
}

// fail stops the process for the error of a task. Most errors that follow the first are those of a process that ends.
func (l *Lifecycle) fail(err error, until Phase) {
	l.mu.Lock()
	if len(l.errs) == 0 || until == Ended {
		l.errs = append(l.errs, err)
	}
	l.mu.Unlock()
	l.stop()
}

// Err returns the error of the first task that failed, and errors of tasks that live until Ended.
func (l *Lifecycle) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.errs...)
}

// grace is how long after the time to drain tasks may take to notice that it is over.
const grace = 250 * time.Millisecond

// Shutdown begins phases, each when the tasks of the phase before have ended. Tasks of Stopping and Closed end together, tasks of Drained and Ended
// one after the other, in the order in which they were begun. End waits for them until over ends, and a moment longer. It reports whether all
// have ended by then.
func (l *Lifecycle) Shutdown(over context.Context, phases ...Phase) (clean bool) {
	late, giveUp := context.WithCancel(context.WithoutCancel(over))
	defer giveUp()
	defer context.AfterFunc(over, func() { time.AfterFunc(grace, giveUp) })()
	clean = true
	for _, phase := range phases {
		of := slices.DeleteFunc(slices.Clone(l.tasks), func(r *running) bool { return r.Until != phase })
		if phase <= Closed {
			for _, r := range of {
				r.end()
			}
		}
		for _, r := range of {
			if r.Drain != nil {
				r.Drain(over)
			}
			r.end()
			select {
			case <-r.ended:
			case <-late.Done():
				clean = false
			}
		}
	}
	return clean
}
