package main

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// The process ends a second after the time that its command may take, whatever the command and
// the readers of its output do.
func TestEndingComes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after time.Duration // what the command allows itself, before and after the signal
		stderr        io.Writer
		want          time.Duration
	}{
		"any command":                {0, 0, io.Discard, margin},
		"a gateway":                  {20 * time.Second, 0, io.Discard, 20*time.Second + margin},
		"a gateway that just starts": {0, 5 * time.Second, io.Discard, 5*time.Second + margin},
		"the longer of two":          {time.Minute, time.Second, io.Discard, time.Minute + margin},
		"output that nobody reads":   {0, 0, stuck{}, margin + margin/10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				signaled, signal := context.WithCancel(t.Context())
				exited := make(chan time.Time, 1)
				ctx := withEnding(signaled, c.stderr, func(code int) {
					if code != exitFailure {
						t.Errorf("exit code %d, want %d", code, exitFailure)
					}
					exited <- time.Now()
				})
				allowToEnd(ctx, c.before)
				time.Sleep(time.Hour)
				began := time.Now()
				signal()
				time.Sleep(margin / 2)
				allowToEnd(ctx, c.after)
				if took := (<-exited).Sub(began); took != c.want {
					t.Errorf("the process ended after %s, want %s", took, c.want)
				}
				time.Sleep(2 * time.Hour) // the output is written
			})
		})
	}
}

// stuck is a writer to a pipe that is full for an hour.
type stuck struct{}

func (stuck) Write(b []byte) (int, error) {
	time.Sleep(time.Hour)
	return len(b), nil
}

// A context that is not of the process, as in tests, has no ending.
func TestNoEnding(t *testing.T) {
	t.Parallel()
	allowToEnd(t.Context(), time.Second)
}
