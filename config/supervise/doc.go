// Package supervise runs the tasks that live as long as the process.
//
// A [Supervisor] recovers a panic of a task, logs its stack, counts it and starts the task again
// after a pause. Too many panics in a short time end the process. A goroutine that a task starts
// for itself runs its function in [Catch]; the task that waits for it passes the result to [Raise],
// so that the panic reaches the supervisor of the task.
//
//	work, ctx := errgroup.WithContext(ctx)
//	work.Go(func() error { return supervise.Catch(func() { renew(ctx) }) })
//	supervise.Raise(work.Wait())
package supervise
