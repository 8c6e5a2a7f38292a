package tasks

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Phase is a phase of shutdown.
type Phase int

// Phases in order.
const (
	// Stopping begins when the process is asked to stop or a task fails.
	Stopping Phase = iota
	// Closed begins when the listeners are to be closed, so that no new requests arrive.
	Closed
	// Drained begins when all tasks that run until Closed have ended.
	Drained
	// Ended begins when all other tasks have ended.
	Ended
)

// Task is work that runs from the start of the process until a phase of its shutdown.
type Task struct {
	Name string
	// Until is the phase in which the context of Run is canceled.
	Until Phase
	// Run runs until its context is canceled. Any error except context.Canceled stops the process.
	Run func(ctx context.Context) error
	// Drain, if not nil, is called in the phase Until before the context of Run is canceled. Its context is canceled when the drain timeout
	// has passed.
	Drain func(over context.Context)
}

// UntilDone is a [Task.Run] that only waits until ctx ends. It is for tasks whose only work is Drain.
func UntilDone(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// NoError converts a function that returns no error to a [Task.Run].
func NoError(run func(ctx context.Context)) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		run(ctx)
		return nil
	}
}

// Every returns a [Task.Run] that calls f immediately and then at intervals until ctx ends.
func Every(interval time.Duration, f func(ctx context.Context)) func(ctx context.Context) error {
	return NoError(func(ctx context.Context) {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			f(ctx)
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
}

// Lifecycle runs the tasks of a process and ends them in phases.
type Lifecycle struct {
	supervisor *Supervisor
	stopping   context.Context //nolint:containedctx // the context of tasks that run until Stopping
	stop       context.CancelFunc
	tasks      []*running

	mu   sync.Mutex // guards errs
	errs []error
}

// running is a started task.
type running struct {
	Task
	end   context.CancelFunc
	ended chan struct{}
}

// NewLifecycle returns a Lifecycle without tasks. Its Stopping phase begins when ctx ends or a task fails.
func NewLifecycle(ctx context.Context, s *Supervisor) *Lifecycle {
	l := &Lifecycle{supervisor: s}
	l.stopping, l.stop = context.WithCancel(ctx)
	return l
}

// Stopping returns a context that is canceled when the Stopping phase begins.
func (l *Lifecycle) Stopping() context.Context { return l.stopping }

// Start starts the tasks. It must be called only once. The Stopping phase also begins if other tasks under the same [Supervisor] panic too
// often.
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

// run runs a task until it ends.
func (l *Lifecycle) run(ctx context.Context, r *running) {
	defer close(r.ended)
	if err := l.supervisor.Run(ctx, r.Name, r.Run); err != nil && !errors.Is(err, context.Canceled) {
		l.fail(err, r.Until)
	}
}

// fail records the error of a task and begins the Stopping phase. After the first error, it records only errors of tasks that run until
// Ended, because other errors are mostly consequences of the shutdown.
func (l *Lifecycle) fail(err error, until Phase) {
	l.mu.Lock()
	if len(l.errs) == 0 || until == Ended {
		l.errs = append(l.errs, err)
	}
	l.mu.Unlock()
	l.stop()
}

// Err returns the error of the first task that failed, joined with the errors of tasks that run until Ended.
func (l *Lifecycle) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.errs...)
}

// grace is the time that tasks have to end after the drain timeout has passed.
const grace = 250 * time.Millisecond

// Shutdown runs the given phases of the shutdown. A phase begins when the tasks of the previous phase have ended. The tasks of Stopping are
// ended together, and so are the tasks of Closed. The tasks of Drained and Ended are ended one after another, in the order in which they
// were started. Shutdown returns true when all tasks have ended. If they have not ended shortly after over is canceled, it returns false.
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
