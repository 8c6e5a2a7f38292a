package filter

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A context that outlasts its parent ends 5 s after the parent, when it is left, or with the time to drain.
func TestOutlast(t *testing.T) {
	errLeft := errors.New("the caller left")
	for name, tc := range map[string]struct {
		drained, leave bool
		after          time.Duration
		cause          error
	}{
		"after its time": {after: LingerTimeout, cause: errLeft},
		"draining":       {drained: true, cause: errLeft},
		"left":           {leave: true, cause: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewStreams(nil)
				parent, end := context.WithCancelCause(t.Context())
				ctx, leave := s.outlast(parent, LingerTimeout)
				defer leave()
				time.Sleep(time.Hour)
				if ctx.Err() != nil {
					t.Fatal("the context ended before its parent")
				}
				if tc.drained {
					over, cut := context.WithCancel(t.Context())
					cut()
					s.End(over)
				}
				begin := time.Now()
				end(errLeft)
				if tc.leave {
					leave()
				}
				<-ctx.Done()
				if took := time.Since(begin); took != tc.after || !errors.Is(context.Cause(ctx), tc.cause) {
					t.Errorf("ended after %s by %v, want %s and %v", took, context.Cause(ctx), tc.after, tc.cause)
				}
			})
		})
	}
}
