package approval_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// eachStore runs a test on each kind of Redis.
func eachStore(t *testing.T, body func(t *testing.T, s *approval.Store)) {
	t.Helper()
	redistest.Each(t, func(t *testing.T, r redistest.Redis) { body(t, approval.New(r.Client, "t:")) })
}

// pending asks a question for a key.
func pending(t *testing.T, s *approval.Store, org, question, key string) (approval.Entry, error) {
	t.Helper()
	e, err := s.Get(t.Context(), org, question)
	if err != nil {
		t.Fatal(err)
	}
	e, _, err = s.Swap(t.Context(), org, e, &approval.Record{ID: "ap-" + question, State: approval.Pending, Key: key, Until: e.Now.Add(approval.RequestTTL)})
	return e, err
}

// become gives a record another state.
func become(ctx context.Context, s *approval.Store, org string, e approval.Entry, state approval.State, claim string) (approval.Entry, bool, error) {
	next := *e.Record
	next.State, next.Claim, next.Until = state, claim, e.Now.Add(time.Hour)
	return s.Swap(ctx, org, e, &next)
}

// Of many calls that race for one grant, one has it.
func TestAGrantIsUsedOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, s *approval.Store) {
		e, err := pending(t, s, "acme", "q", "ann")
		if err != nil {
			t.Fatal(err)
		}
		granted, swapped, err := become(t.Context(), s, "acme", e, approval.Granted, "")
		if err != nil || !swapped {
			t.Fatalf("grant: %t, %v", swapped, err)
		}
		var used atomic.Int64
		var group sync.WaitGroup
		for i := range 20 {
			group.Go(func() {
				_, mine, err := become(t.Context(), s, "acme", granted, approval.Used, fmt.Sprint(i))
				if err != nil {
					t.Error(err)
				}
				if mine {
					used.Add(1)
				}
			})
		}
		group.Wait()
		if got := used.Load(); got != 1 {
			t.Errorf("%d calls used the grant, want 1", got)
		}
		if e, err := s.Find(t.Context(), "acme", "ap-q"); err != nil || e.Record.State != approval.Used {
			t.Errorf("Find = %+v, %v, want a used record", e.Record, err)
		}
		if _, err := s.Find(t.Context(), "globex", "ap-q"); !errors.Is(err, approval.ErrNotFound) {
			t.Errorf("another organisation: %v, want %v", err, approval.ErrNotFound)
		}
	})
}

// Requests that wait are bounded per key; answered ones do not count.
func TestPendingRequestsAreBounded(t *testing.T) {
	eachStore(t, func(t *testing.T, s *approval.Store) {
		var first approval.Entry
		for i := range approval.MaxPendingCaller {
			e, err := pending(t, s, "acme", fmt.Sprint(i), "ann")
			if err != nil {
				t.Fatalf("request %d: %v", i, err)
			}
			if i == 0 {
				first = e
			}
		}
		if _, err := pending(t, s, "acme", "more", "ann"); !errors.Is(err, approval.ErrFull) {
			t.Fatalf("one more: %v, want %v", err, approval.ErrFull)
		}
		if _, err := pending(t, s, "acme", "other", "bob"); err != nil {
			t.Errorf("another key: %v", err)
		}
		if _, err := pending(t, s, "acme", "1", "ann"); err != nil {
			t.Errorf("the same question: %v", err)
		}
		if _, swapped, err := become(t.Context(), s, "acme", first, approval.Denied, ""); err != nil || !swapped {
			t.Fatalf("deny: %t, %v", swapped, err)
		}
		if _, err := pending(t, s, "acme", "more", "ann"); err != nil {
			t.Errorf("with room: %v", err)
		}
		if all, err := s.Entries(t.Context(), "acme"); err != nil || len(all) != approval.MaxPendingCaller+2 {
			t.Errorf("%d entries, %v, want %d", len(all), err, approval.MaxPendingCaller+2)
		}
	})
}
