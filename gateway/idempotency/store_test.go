package idempotency_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway/idempotency"
)

// newStore returns a store in an embedded Redis.
func newStore(t *testing.T) (*idempotency.Store, *miniredis.Miniredis) {
	t.Helper()
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	return idempotency.New(client, "t:"), server
}

func record(print string) *idempotency.Record {
	return &idempotency.Record{Print: print, Calls: []idempotency.Call{{ID: print}}}
}

// Of many that write the first record at once, one does.
func TestOneIsFirst(t *testing.T) {
	s, _ := newStore(t)
	var firsts atomic.Int64
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			e, first, err := s.Swap(t.Context(), "acme", "a", idempotency.Entry{}, record(string(rune('a'+i))), time.Hour)
			if err != nil || e.Record == nil {
				t.Errorf("Swap = %+v, %v", e, err)
			}
			if first {
				firsts.Add(1)
			}
		})
	}
	group.Wait()
	if n := firsts.Load(); n != 1 {
		t.Errorf("%d were first, want 1", n)
	}
}

// An entry is replaced by whoever has seen it as it is, is forgotten in time, and is
// that of one organisation.
func TestSwap(t *testing.T) {
	s, server := newStore(t)
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	server.SetTime(now)
	ctx := t.Context()
	first, _, err := s.Swap(ctx, "acme", "a", idempotency.Entry{}, record("one"), time.Hour)
	if err != nil || !first.Now.Equal(now) {
		t.Fatalf("Swap = %+v, %v, want the store's clock", first, err)
	}
	if e, _ := s.Get(ctx, "globex", "a"); e.Record != nil {
		t.Errorf("another organisation sees %+v", e.Record)
	}
	second, swapped, err := s.Swap(ctx, "acme", "a", first, record("two"), time.Hour)
	if !swapped || err != nil {
		t.Errorf("Swap = %v, %v", swapped, err)
	}
	if e, swapped, _ := s.Swap(ctx, "acme", "a", first, record("three"), time.Hour); swapped || !cmp.Equal(e.Record, record("two")) {
		t.Errorf("a late Swap = %+v, %v, want what is there", e.Record, swapped)
	}
	if _, swapped, _ := s.Swap(ctx, "acme", "a", first, record("two"), time.Hour); swapped {
		t.Error("two have written the same record")
	}
	if _, swapped, err := s.Swap(ctx, "acme", "a", second, nil, 0); !swapped || err != nil {
		t.Errorf("delete = %v, %v", swapped, err)
	}
	if e, err := s.Get(ctx, "acme", "a"); e.Record != nil || err != nil {
		t.Errorf("Get after delete = %+v, %v", e.Record, err)
	}
	if _, _, err := s.Swap(ctx, "acme", "a", idempotency.Entry{}, record("four"), time.Hour); err != nil {
		t.Error(err)
	}
	server.FastForward(time.Hour + time.Second)
	if e, _ := s.Get(ctx, "acme", "a"); e.Record != nil {
		t.Errorf("Get after an hour = %+v", e.Record)
	}
	server.SetError("ERR away")
	if _, err := s.Get(ctx, "acme", "a"); !errors.Is(err, idempotency.ErrUnavailable) {
		t.Errorf("Get = %v, want %v", err, idempotency.ErrUnavailable)
	}
}

// A resource belongs to the call that claimed it first, which may claim it again.
func TestClaim(t *testing.T) {
	s, _ := newStore(t)
	for _, tt := range []struct {
		resource, call string
		want           bool
	}{{"pod/p1", "a", true}, {"pod/p1", "b", false}, {"pod/p1", "a", true}, {"pod/p2", "b", true}} {
		if got, err := s.Claim(t.Context(), "acme", tt.resource, tt.call); got != tt.want || err != nil {
			t.Errorf("Claim(%s, %s) = %v, %v, want %v", tt.resource, tt.call, got, err, tt.want)
		}
	}
}
