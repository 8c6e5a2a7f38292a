package main

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// margin is the time that a command gets in addition to the time set by [allowToEnd] before it is terminated.
const margin = time.Second

// ending terminates the process if a command does not return in time after a signal. It takes no locks and does not wait for other parts of
// the program, so that nothing can delay the termination.
type ending struct {
	allowed atomic.Int64 // a time.Duration
}

// endingKey is the context key of the process's ending.
type endingKey struct{}

// withEnding returns a context for commands. After ctx ends, the command may run for the time set by [allowToEnd] plus margin. Then
// withEnding calls exit with an exit status.
func withEnding(ctx context.Context, stderr io.Writer, exit func(code int)) context.Context {
	e := new(ending)
	context.AfterFunc(ctx, func() {
		began := time.Now()
		for left := margin; left > 0; left = time.Until(began.Add(time.Duration(e.allowed.Load()) + margin)) {
			<-time.After(min(left, margin)) // the permitted time may change meanwhile
		}
		printed := make(chan struct{})
		go func() {
			defer close(printed)
			_, _ = fmt.Fprintln(stderr, "tollgate: stopped by force: the process did not end in time after the signal")
		}()
		select {
		case <-printed:
		case <-time.After(margin / 10): // standard error may be blocked
		}
		exit(exitFailure)
	})
	return context.WithValue(ctx, endingKey{}, e)
}

// allowToEnd permits the command of ctx to run for at least d after a signal.
func allowToEnd(ctx context.Context, d time.Duration) {
	if e, ok := ctx.Value(endingKey{}).(*ending); ok {
		for now := e.allowed.Load(); now < int64(d) && !e.allowed.CompareAndSwap(now, int64(d)); {
			now = e.allowed.Load()
		}
	}
}
