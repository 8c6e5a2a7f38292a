// Package panics passes a panic of a goroutine to the task that waits for the goroutine.
//
// A goroutine started by a task runs its function in [Catch]. The task passes the result to [Raise], so that the panic reaches the
// supervisor of the task, in package tasks of the gateway.
//
//	work, ctx := errgroup.WithContext(ctx)
//	work.Go(func() error { return panics.Catch(func() { renew(ctx) }) })
//	panics.Raise(work.Wait())
package panics
