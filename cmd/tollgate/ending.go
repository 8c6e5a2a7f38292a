package main

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// margin is how long after the time that it may take a command is ended by force.
const margin = time.Second

// ending ends the process if a command does not end in time after a signal. It takes no lock
// and waits for nothing, so that no other part of the program can hold it up.
type ending struct {
	allowed atomic.Int64 // as a time.Duration
}

// endingKey is the key of the process's ending in the context of a command.
type endingKey struct{}

// withEnding returns a context for commands. When ctx ends, the process has the time that
// [allowToEnd] gives, and a second more; then exit is called with an exit code.
func withEnding(ctx context.Context, stderr io.Writer, exit func(code int)) context.Context {
	e := new(ending)
	context.AfterFunc(ctx, func() {
		began := time.Now()
		for {
			left := time.Until(began.Add(time.Duration(e.allowed.Load()) + margin))
			if left <= 0 {
				break
			}
			<-time.After(min(left, margin)) // the allowed time may change meanwhile
		}
		said := make(chan struct{})
		go func() {
			defer close(said)
			_, _ = fmt.Fprintln(stderr, "tollgate: stopped by force: the process did not end in time after the signal")
		}()
		select {
		case <-said:
		case <-time.After(margin / 10): // nobody reads standard error
		}
		exit(exitFailure)
	})
	return context.WithValue(ctx, endingKey{}, e)
}

// allowToEnd is how long at least the command of ctx may take to end after a signal.
func allowToEnd(ctx context.Context, d time.Duration) {
	if e, ok := ctx.Value(endingKey{}).(*ending); ok {
		for now := e.allowed.Load(); now < int64(d) && !e.allowed.CompareAndSwap(now, int64(d)); {
			now = e.allowed.Load()
		}
	}
}
