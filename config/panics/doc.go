// Package panics carries a panic from a goroutine to the task that waits for the goroutine.
//
// A goroutine that a task starts for itself runs its function in [Catch]; the task passes the
// result to [Raise], so that the panic reaches the supervisor of the task (package tasks of the gateway).
//
//	work, ctx := errgroup.WithContext(ctx)
//	work.Go(func() error { return panics.Catch(func() { renew(ctx) }) })
//	panics.Raise(work.Wait())
package panics
