package tasks

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// counter counts.
type counter struct {
	noop.Int64Counter
	n int64
}

func (c *counter) Add(_ context.Context, n int64, _ ...metric.AddOption) { c.n += n }

// A task that panics is logged with its stack, counted, and started again after a pause that
// doubles; its goroutines have ended by then.
func TestATaskIsRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var counted counter
		var ended atomic.Int32
		s := NewSupervisor(slog.New(slog.NewTextHandler(&log, nil)), &counted)
		var begun []time.Duration
		start, failed := time.Now(), errors.New("failed")
		err := s.Run(t.Context(), "renewal", func(ctx context.Context) error {
			begun = append(begun, time.Since(start))
			if len(begun) == 4 {
				return failed
			}
			go func() { <-ctx.Done(); ended.Add(1) }()
			panic("boom")
		})
		synctest.Wait()
		if !errors.Is(err, failed) {
			t.Errorf("error %v, want the error of the task", err)
		}
		for i, want := range []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second} {
			if i >= len(begun) || begun[i] != want {
				t.Fatalf("begun after %v, want %v", begun, want)
			}
		}
		if counted.n != 3 || ended.Load() != 3 {
			t.Errorf("%d panics counted and %d goroutines ended, want 3 of each", counted.n, ended.Load())
		}
		if n := len(s.fatal); n > 0 {
			t.Error("the process ends")
		}
		for _, want := range []string{"boom", "task=renewal", "TestATaskIsRestarted"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log lacks %q: %s", want, &log)
			}
		}
	})
}

// The fifth panic within a minute ends the process, whichever tasks panicked; five panics in more
// than a minute do not.
func TestTooManyPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSupervisor(slog.New(slog.DiscardHandler), noop.Int64Counter{})
		panics := func(n int, apart time.Duration) error {
			return s.Run(t.Context(), "renewal", func(context.Context) error {
				if time.Sleep(apart); n == 0 {
					return nil
				}
				n--
				panic("boom")
			})
		}
		if err := panics(9, 20*time.Second); err != nil || len(s.fatal) > 0 {
			t.Errorf("a panic each 20 s: %v; the process ends: %t", err, len(s.fatal) > 0)
		}
		time.Sleep(time.Minute)
		other := make(chan error)
		go func() { other <- s.Run(t.Context(), "look", func(context.Context) error { panic("bang") }) }()
		err := panics(2, 2*time.Second)
		got, fatal := <-other, <-s.fatal
		if err == nil && got == nil || !strings.Contains(fatal.Error(), "tasks panicked 5 times within 1m0s") || len(s.fatal) > 0 {
			t.Errorf("five panics in a minute: %v, %v, %v", err, got, fatal)
		}
	})
}

// A task whose context ends during the pause is not restarted.
func TestNoRestartAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		s, n := NewSupervisor(slog.New(slog.DiscardHandler), noop.Int64Counter{}), 0
		if err := s.Run(ctx, "renewal", func(context.Context) error { n++; panic("boom") }); err != nil || n != 1 {
			t.Errorf("%v after %d runs, want none after one", err, n)
		}
	})
}
