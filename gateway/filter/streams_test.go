package filter

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/identity"
)

func TestStreams(t *testing.T) {
	allowed := map[string]bool{"ann": true, "bob": true}
	s := NewStreams(func(s Stream) (time.Duration, bool) { return 0, allowed[s.Caller.Key] })
	open := func(key string) (context.Context, func()) {
		return s.add(t.Context(), Stream{Caller: &identity.Caller{Key: key}})
	}
	ann, endAnn := open("ann")
	bob, endBob := open("bob")
	defer endBob()
	allowed["ann"] = false
	s.Recheck()
	if got := context.Cause(ann); !errors.Is(got, errWithdrawn) {
		t.Errorf("ann's stream ended with %v, want errWithdrawn", got)
	}
	if bob.Err() != nil {
		t.Errorf("bob's stream ended with %v", context.Cause(bob))
	}
	endAnn()
	if len(s.open) != 1 {
		t.Errorf("%d streams are open, want bob's", len(s.open))
	}
	// Forbidden between its verdict and its opening: no Recheck will come.
	late, endLate := open("ann")
	defer endLate()
	if got := context.Cause(late); !errors.Is(got, errWithdrawn) {
		t.Errorf("the late stream ended with %v, want errWithdrawn", got)
	}
}

// A stream that is open when the time of its key is shortened, or given an end, ends
// then; one whose key is prolonged goes on.
func TestStreamsEndWithTheTimeTheyHave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left time.Duration
		s := NewStreams(func(Stream) (time.Duration, bool) { return left, true })
		ctx, release := s.add(t.Context(), Stream{Caller: new(identity.Caller)})
		defer release()
		for _, left = range []time.Duration{time.Minute, time.Hour, 0, time.Second} {
			s.Recheck()
		}
		time.Sleep(time.Second - 1)
		if ctx.Err() != nil {
			t.Fatal("the stream ended early")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if got := context.Cause(ctx); !errors.Is(got, errWithdrawn) {
			t.Errorf("the stream ended with %v, want errWithdrawn", got)
		}
	})
}

// broken fails with the error of a context that ended.
type broken struct{ io.Reader }

func (broken) Read([]byte) (int, error) { return 0, context.Canceled }
func (broken) Close() error             { return nil }

func TestCuttable(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	if _, err := (&endableBody{broken{}, ctx}).Read(nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Read = %v, want the body's own error", err)
	}
	cancel(errWithdrawn)
	if _, err := (&endableBody{broken{}, ctx}).Read(nil); !errors.Is(err, errWithdrawn) {
		t.Errorf("Read = %v, want errWithdrawn", err)
	}
	whole := &endableBody{io.NopCloser(strings.NewReader("")), ctx}
	if _, err := whole.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("Read = %v, want io.EOF: it was sent whole", err)
	}
}
