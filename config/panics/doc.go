// Package panics passes a panic of a goroutine to the task that waits for the goroutine.
//
// A goroutine started by a task runs its function in [Catch]. The task passes the result to [Raise], which panics again in the task. The
// supervisor of the task, in package gateway/tasks, then handles the panic.
//
//	work, ctx := errgroup.WithContext(ctx)
//	work.Go(func() error { return panics.Catch(func() { renew(ctx) }) })
//	panics.Raise(work.Wait())
package panics
