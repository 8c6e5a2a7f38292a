package record_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway/record"
	"github.com/tollgate-dev/tollgate/ratelimit/redistest"
)

type (
	entry = record.Entry[string]
	write = record.Write[string]
)

// eachStore runs a test on the embedded Redis and on a real one.
func eachStore(t *testing.T, body func(t *testing.T, s *record.Store[string])) {
	t.Helper()
	for name, addr := range map[string]func(t *testing.T) string{
		"embedded": func(t *testing.T) string { t.Helper(); return miniredis.RunT(t).Addr() },
		"redis":    func(t *testing.T) string { t.Helper(); return redistest.Start(t) },
	} {
		t.Run(name, func(t *testing.T) { body(t, newStore(t, addr(t))) })
	}
}

func newStore(t *testing.T, addr string) *record.Store[string] {
	t.Helper()
	return record.New[string](redistest.Client(t, redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true}), "t:")
}

// kept is a record for an hour.
func kept(text string, in ...record.Index) write {
	return write{Record: &text, Keep: time.Hour, In: in}
}

// ids are those of the entries in an index.
func ids(t *testing.T, s *record.Store[string], index string) map[string]string {
	t.Helper()
	entries, err := s.Entries(t.Context(), "acme", index)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	for _, e := range entries {
		out[e.ID] = *e.Record
	}
	return out
}

// Of many that replace the same entry at once, one does: the first record, and any
// other one.
func TestOneSwaps(t *testing.T) {
	eachStore(t, func(t *testing.T, s *record.Store[string]) {
		old := entry{ID: "a"}
		for round := range 3 {
			var winners atomic.Int64
			var won entry
			var group sync.WaitGroup
			for i := range 20 {
				group.Go(func() {
					e, mine, err := s.Swap(t.Context(), "acme", old, kept(fmt.Sprint(round, i)))
					if err != nil || e.Record == nil {
						t.Errorf("Swap = %+v, %v, want a record", e, err)
					}
					if mine && winners.Add(1) == 1 {
						won = e
					}
				})
			}
			group.Wait()
			if got := winners.Load(); got != 1 {
				t.Fatalf("round %d: %d have swapped, want 1", round, got)
			}
			old = won
		}
	})
}

// An entry is replaced only as it was seen, even by an equal record; it belongs to one
// organisation, and nothing is left of one that is deleted.
func TestSwap(t *testing.T) {
	eachStore(t, func(t *testing.T, s *record.Store[string]) {
		ctx, in := t.Context(), record.Index{Name: "all"}
		first, swapped, err := s.Swap(ctx, "acme", entry{ID: "a"}, kept("one", in))
		if !swapped || err != nil {
			t.Fatalf("the first: %t, %v", swapped, err)
		}
		if e, err := s.Get(ctx, "globex", "a"); e.Record != nil || err != nil {
			t.Errorf("another organisation: %+v, %v, want no record", e, err)
		}
		second, swapped, err := s.Swap(ctx, "acme", first, kept("two", in))
		if !swapped || err != nil {
			t.Fatalf("the second: %t, %v", swapped, err)
		}
		for _, text := range []string{"three", "two"} {
			e, swapped, err := s.Swap(ctx, "acme", first, kept(text, in))
			if swapped || err != nil || e.Record == nil || *e.Record != "two" {
				t.Errorf("a late %s: %+v, %t, %v, want what there is", text, e, swapped, err)
			}
		}
		if diff := cmp.Diff(map[string]string{"a": "two"}, ids(t, s, "all")); diff != "" {
			t.Errorf("entries (-want +got):\n%s", diff)
		}
		if _, swapped, err := s.Swap(ctx, "acme", second, write{In: []record.Index{in}}); !swapped || err != nil {
			t.Errorf("delete: %t, %v", swapped, err)
		}
		if e, err := s.Get(ctx, "acme", "a"); e.Record != nil || err != nil {
			t.Errorf("after that: %+v, %v, want no record", e, err)
		}
		if got := ids(t, s, "all"); len(got) != 0 {
			t.Errorf("after that, entries: %v, want none", got)
		}
	})
}

// An index has as many records as it may; who is in it already stays, and who leaves
// makes room.
func TestIndexesAreBounded(t *testing.T) {
	eachStore(t, func(t *testing.T, s *record.Store[string]) {
		few, all := record.Index{Name: "few", Most: 2}, record.Index{Name: "all"}
		put := func(id string, few record.Index) error {
			e, err := s.Get(t.Context(), "acme", id)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = s.Swap(t.Context(), "acme", e, kept(id, all, few))
			return err
		}
		for _, tt := range []struct {
			id   string
			out  bool
			want error
		}{
			{id: "a"},
			{id: "b"},
			{id: "c", want: record.ErrFull},
			{id: "d", out: true},
			{id: "a"},
			{id: "b", out: true},
			{id: "c"},
			{id: "e", want: record.ErrFull},
		} {
			in := few
			in.Out = tt.out
			if err := put(tt.id, in); !errors.Is(err, tt.want) {
				t.Errorf("%s, out %t: %v, want %v", tt.id, tt.out, err, tt.want)
			}
		}
		if diff := cmp.Diff(map[string]string{"a": "a", "c": "c"}, ids(t, s, "few")); diff != "" {
			t.Errorf("the bounded index (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{"a": "a", "b": "b", "c": "c", "d": "d"}, ids(t, s, "all")); diff != "" {
			t.Errorf("the other one (-want +got):\n%s", diff)
		}
	})
}

// A record ends after a time or at one, by the store's clock, and makes room. One that
// has ended replaces nothing.
func TestRecordsEnd(t *testing.T) {
	server := miniredis.RunT(t)
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	server.SetTime(now)
	s := newStore(t, server.Addr())
	in := []record.Index{{Name: "few", Most: 1}}
	text := "a"
	for id, w := range map[string]write{
		"after": {Record: &text, Keep: time.Hour}, "at": {Record: &text, Until: now.Add(time.Hour), In: in},
	} {
		if e, swapped, err := s.Swap(t.Context(), "acme", entry{ID: id}, w); !swapped || err != nil || !e.Now.Equal(now) {
			t.Fatalf("%s: %+v, %t, %v, want the store's clock %v", id, e, swapped, err, now)
		}
	}
	if e, swapped, err := s.Swap(t.Context(), "acme", entry{ID: "past"}, write{Record: &text, Until: now}); swapped || e.Record != nil || err != nil {
		t.Errorf("one that has ended: %+v, %t, %v, want no record", e, swapped, err)
	}
	server.FastForward(time.Hour)
	server.SetTime(now.Add(time.Hour))
	for _, id := range []string{"after", "at"} {
		if e, err := s.Get(t.Context(), "acme", id); e.Record != nil || err != nil {
			t.Errorf("%s, after an hour: %+v, %v, want no record", id, e, err)
		}
	}
	if got := ids(t, s, "few"); len(got) != 0 {
		t.Errorf("entries after an hour: %v, want none", got)
	}
	if _, swapped, err := s.Swap(t.Context(), "acme", entry{ID: "b"}, kept("b", in...)); !swapped || err != nil {
		t.Errorf("after an hour: %t, %v, want room", swapped, err)
	}
	server.SetError("ERR away")
	if _, err := s.Get(t.Context(), "acme", "b"); !errors.Is(err, record.ErrUnavailable) {
		t.Errorf("Get = %v, want %v", err, record.ErrUnavailable)
	}
}
