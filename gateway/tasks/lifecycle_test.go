package tasks_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/tasks"
)

// ends notes the order of events.
type ends struct {
	mu  sync.Mutex
	all []string
}

func (e *ends) note(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, what)
}

// events returns a copy of the events so far.
func (e *ends) events() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.all)
}

// task is a task that takes a time to end.
func (e *ends) task(name string, until tasks.Phase, takes time.Duration) tasks.Task {
	return tasks.Task{Name: name, Until: until, Run: func(ctx context.Context) error {
		<-ctx.Done()
		e.note(name + " is told")
		time.Sleep(takes)
		e.note(name + " ends")
		return ctx.Err()
	}}
}

// Doors end together, whichever takes longest; what is drained ends one after the other in the order of the list, and goes on while it drains.
func TestTasksEndByPhases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var e ends
		ctx, stop := context.WithCancel(t.Context())
		ledger := e.task("ledger", tasks.Drained, time.Second)
		ledger.Drain = func(context.Context) {
			time.Sleep(time.Second)
			e.note("ledger is drained")
		}
		life := tasks.NewLifecycle(ctx, tasks.NewSupervisor(slog.New(slog.DiscardHandler), nil))
		life.Start([]tasks.Task{
			e.task("log", tasks.Ended, time.Second), e.task("log of changes", tasks.Ended, 0), ledger, e.task("door", tasks.Closed, 2*time.Second),
			e.task("reports", tasks.Stopping, 0), e.task("other door", tasks.Closed, 3*time.Second), e.task("admin", tasks.Drained, 0),
		})
		stop()
		<-life.Stopping().Done()
		synctest.Wait()
		e.note("notice is over")
		if !life.Shutdown(t.Context(), tasks.Closed, tasks.Drained, tasks.Stopping) {
			t.Error("tasks are left behind")
		}
		e.note("last words")
		if !life.Shutdown(t.Context(), tasks.Ended) || life.Err() != nil {
			t.Errorf("tasks are left behind, or failed: %v", life.Err())
		}
		got := e.events()
		doors := map[string]bool{"door is told": true, "other door is told": true}
		if !doors[got[3]] || !doors[got[4]] {
			t.Errorf("%q and %q, want the doors to be told at once", got[3], got[4])
		}
		got[3], got[4] = "the doors", "are told"
		if diff := cmp.Diff([]string{
			"reports is told", "reports ends", "notice is over", "the doors", "are told", "door ends", "other door ends",
			"ledger is drained", "ledger is told", "ledger ends", "admin is told", "admin ends", "last words",
			"log is told", "log ends", "log of changes is told", "log of changes ends",
		}, got); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

// A task that hangs holds up the end no longer than the time to drain, and the tasks behind it are told to end all the same.
func TestTasksThatHang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var e ends
		life := tasks.NewLifecycle(t.Context(), tasks.NewSupervisor(slog.New(slog.DiscardHandler), nil))
		life.Start([]tasks.Task{e.task("door", tasks.Closed, time.Hour), e.task("limiter", tasks.Drained, 0)})
		over, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		if life.Shutdown(over, tasks.Closed, tasks.Drained) {
			t.Error("a door that hangs has ended")
		}
		if took := time.Since(began); took < time.Minute || took > time.Minute+time.Second {
			t.Errorf("the end took %v, want a minute and a moment", took)
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"door is told", "limiter is told", "limiter ends"}, e.events()); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
		time.Sleep(time.Hour)
	})
}

// The first failure stops the process and is its error; a log's failure is added.
func TestTasksThatFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fails := func(name string, until tasks.Phase) tasks.Task {
			return tasks.Task{Name: name, Until: until, Run: func(ctx context.Context) error {
				if name != "first" {
					<-ctx.Done()
				}
				return errors.New(name)
			}}
		}
		life := tasks.NewLifecycle(t.Context(), tasks.NewSupervisor(slog.New(slog.DiscardHandler), nil))
		life.Start([]tasks.Task{fails("log", tasks.Ended), fails("first", tasks.Closed), fails("later", tasks.Drained), {Name: "waits", Run: tasks.UntilDone}})
		<-life.Stopping().Done()
		life.Shutdown(t.Context(), tasks.Closed, tasks.Drained, tasks.Stopping, tasks.Ended)
		if err := life.Err(); err == nil || err.Error() != "first\nlog" {
			t.Errorf("%v, want the first failure and the log's", err)
		}
	})
}
