package upstream

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// slow is a body each part of which takes some time. It ends when given up.
type slow struct {
	givenUp <-chan struct{}
	parts   []time.Duration
}

func (s *slow) Read(p []byte) (int, error) {
	if len(s.parts) == 0 {
		return 0, io.EOF
	}
	select {
	case <-time.After(s.parts[0]):
		s.parts = s.parts[1:]
		return copy(p, "x"), nil
	case <-s.givenUp:
		return 0, context.Canceled
	}
}

func (*slow) Close() error { return nil }

func TestPatience(t *testing.T) {
	for name, tc := range map[string]struct {
		patience, reader time.Duration // reader is how long it takes between reads; no patience is an event stream
		parts            []time.Duration
		want             error
	}{
		"quick":             {time.Second, 0, []time.Duration{0, 0, 0}, nil},
		"slow, but flowing": {time.Second, 0, []time.Duration{999 * time.Millisecond, 999 * time.Millisecond, 999 * time.Millisecond}, nil},
		"stalls":            {time.Second, 0, []time.Duration{0, 1251 * time.Millisecond, 0}, ErrTimeout},
		"stalls later":      {time.Second, 0, []time.Duration{0, 600 * time.Millisecond, 600 * time.Millisecond, 1251 * time.Millisecond}, ErrTimeout},
		"a slow reader":     {time.Second, time.Minute, []time.Duration{0, 0, 0}, nil},
		"an event stream":   {0, 0, []time.Duration{0, time.Hour, 0}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				b := &body{ReadCloser: &slow{ctx.Done(), tc.parts}, ctx: ctx, cancel: cancel}
				if tc.patience > 0 {
					b.watch = newStalls(tc.patience)
					b.watch.add(b)
				}
				var err error
				for err == nil {
					time.Sleep(tc.reader)
					_, err = b.Read(make([]byte, 8))
				}
				if tc.want == nil {
					tc.want = io.EOF
				}
				if !errors.Is(err, tc.want) {
					t.Errorf("the body ended with %v, want %v", err, tc.want)
				}
				if err := b.Close(); err != nil || ctx.Err() == nil {
					t.Errorf("Close = %v, and the context is %v", err, ctx.Err())
				}
			})
		})
	}
}
