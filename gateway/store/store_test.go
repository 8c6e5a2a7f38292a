package store_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

type (
	entry = store.Entry[string]
	write = store.Write[string]
)

// eachStore runs a test on each kind of Redis.
func eachStore(t *testing.T, body func(t *testing.T, s *store.Store[string])) {
	t.Helper()
	redistest.Each(t, func(t *testing.T, r redistest.Redis) { body(t, store.New[string](r.Client, "t:")) })
}

// kept is a record for an hour.
func kept(text string, in ...store.Index) write {
	return write{Record: &text, TTL: time.Hour, Indexes: in}
}

// ids are those of the entries in an index.
func ids(t *testing.T, s *store.Store[string], index string) map[string]string {
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
	eachStore(t, func(t *testing.T, s *store.Store[string]) {
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
	eachStore(t, func(t *testing.T, s *store.Store[string]) {
		ctx, in := t.Context(), store.Index{Name: "all"}
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
		if _, swapped, err := s.Swap(ctx, "acme", second, write{Indexes: []store.Index{in}}); !swapped || err != nil {
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

// An index has as many records as it may; a record in it already stays, and one that
// leaves makes room.
func TestIndexesAreBounded(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store.Store[string]) {
		few, all := store.Index{Name: "few", MaxRecords: 2}, store.Index{Name: "all"}
		put := func(id string, few store.Index) error {
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
			{id: "c", want: store.ErrFull},
			{id: "d", out: true},
			{id: "a"},
			{id: "b", out: true},
			{id: "c"},
			{id: "e", want: store.ErrFull},
		} {
			in := few
			in.Exclude = tt.out
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

// A write that evicts makes room: the records that end first go, from all indexes of the write.
func TestWritesEvict(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store.Store[string]) {
		put := func(id string, hours int, in ...store.Index) {
			w := write{Record: &id, TTL: time.Duration(hours) * time.Hour, Indexes: in, Evict: true}
			if _, swapped, err := s.Swap(t.Context(), "acme", entry{ID: id}, w); !swapped || err != nil {
				t.Fatalf("%s: %t, %v", id, swapped, err)
			}
		}
		few, all := store.Index{Name: "few", MaxRecords: 2}, store.Index{Name: "all", MaxRecords: 3}
		put("late", 9, all, few)
		put("early", 1, all, few)
		put("other", 5, all)
		put("next", 6, all, few) // of both indexes, early leaves
		if diff := cmp.Diff(map[string]string{"late": "late", "next": "next"}, ids(t, s, "few")); diff != "" {
			t.Errorf("the smaller index (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{"late": "late", "other": "other", "next": "next"}, ids(t, s, "all")); diff != "" {
			t.Errorf("the larger index (-want +got):\n%s", diff)
		}
		if e, err := s.Get(t.Context(), "acme", "early"); e.Record != nil || err != nil {
			t.Errorf("the evicted record: %+v, %v, want none", e, err)
		}
		put("smaller", 7, store.Index{Name: "all", MaxRecords: 2})
		if diff := cmp.Diff(map[string]string{"late": "late", "smaller": "smaller"}, ids(t, s, "all")); diff != "" {
			t.Errorf("an index whose bound was lowered (-want +got):\n%s", diff)
		}
	})
}

// A record ends after a time or at one, by the store's clock, and makes room. One that
// has ended replaces nothing.
func TestRecordsEnd(t *testing.T) {
	server := miniredis.RunT(t)
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	server.SetTime(now)
	s := store.New[string](redistest.Once(t, server.Addr()), "t:")
	in := []store.Index{{Name: "few", MaxRecords: 1}}
	text := "a"
	for id, w := range map[string]write{
		"after": {Record: &text, TTL: time.Hour}, "at": {Record: &text, Until: now.Add(time.Hour), Indexes: in},
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
}

// A record without an end has none, and neither has an index that it is in.
func TestRecordsForEver(t *testing.T) {
	redistest.Each(t, func(t *testing.T, r redistest.Redis) {
		s, text, in := store.New[string](r.Client, "t:"), "a", []store.Index{{Name: "all"}}
		for _, tt := range []struct {
			id   string
			w    write
			ends bool // whether the index does
		}{
			{"short", write{Record: &text, TTL: time.Hour, Indexes: in}, true},
			{"long", write{Record: &text, Indexes: in}, false},
			{"other", write{Record: &text, TTL: time.Minute, Indexes: in}, false},
			{"long", write{Indexes: in}, true},
		} {
			e, err := s.Get(t.Context(), "acme", tt.id)
			if err != nil {
				t.Fatal(err)
			}
			if _, swapped, err := s.Swap(t.Context(), "acme", e, tt.w); !swapped || err != nil {
				t.Fatalf("%s: %t, %v", tt.id, swapped, err)
			}
			left := map[string]bool{"t:{acme}#all": tt.ends}
			if tt.w.Record != nil {
				left[s.Key("acme", tt.id)] = tt.w.TTL > 0
			}
			for key, ends := range left {
				if left, err := r.Client.PTTL(t.Context(), key).Result(); err != nil || (left > 0) != ends || left > time.Hour {
					t.Errorf("after %s, %s ends in %v (%v), want an end: %t", tt.id, key, left, err, ends)
				}
			}
		}
	})
}

// A version changes with each record that is replaced and says so, and with nothing else.
func TestVersions(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store.Store[string]) {
		orgs := []string{"acme", "globex", "none"}
		version := func() map[string]string {
			t.Helper()
			v, err := s.Versions(t.Context(), orgs)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		if got, want := version(), map[string]string{"acme": "", "globex": "", "none": ""}; !cmp.Equal(got, want) {
			t.Errorf("versions of nothing: %v, want %v", got, want)
		}
		seen, w := map[string]bool{"": true}, kept("x")
		w.Version = true
		for i := range 3 {
			if _, _, err := s.Swap(t.Context(), "acme", entry{ID: fmt.Sprint(i)}, w); err != nil {
				t.Fatal(err)
			}
			now := version()
			if seen[now["acme"]] || now["globex"] != "" {
				t.Errorf("after change %d: %v, want another for acme alone", i, now)
			}
			seen[now["acme"]] = true
		}
		before := version()
		if _, swapped, err := s.Swap(t.Context(), "acme", entry{ID: "1"}, w); swapped || err != nil {
			t.Fatalf("a record that is there: %t, %v", swapped, err)
		}
		if _, _, err := s.Swap(t.Context(), "acme", entry{ID: "quiet"}, kept("x")); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, version()); diff != "" {
			t.Errorf("without a change that counts (-before +after):\n%s", diff)
		}
		if none, err := s.Versions(t.Context(), nil); err != nil || len(none) != 0 {
			t.Errorf("versions of no organisation: %v, %v", none, err)
		}
	})
}

// A look finds what Get does, ready to be replaced; but it does not ask for the clock
// where there is nothing.
func TestLook(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store.Store[string]) {
		none, err := s.Peek(t.Context(), "acme", "a")
		if err != nil || none.ID != "a" || none.Record != nil || !none.Now.IsZero() {
			t.Errorf("nothing: %+v, %v, want no record and no clock", none, err)
		}
		first, swapped, err := s.Swap(t.Context(), "acme", none, kept("one"))
		if !swapped || err != nil {
			t.Fatalf("the first: %t, %v", swapped, err)
		}
		e, err := s.Peek(t.Context(), "acme", "a")
		if err != nil || e.Record == nil || *e.Record != "one" || e.Now.Before(first.Now) {
			t.Fatalf("a record: %+v, %v, want one and the clock", e, err)
		}
		if _, swapped, err := s.Swap(t.Context(), "acme", none, kept("two")); swapped || err != nil {
			t.Errorf("where nothing is any more: %t, %v", swapped, err)
		}
		if _, swapped, err := s.Swap(t.Context(), "acme", e, kept("two")); !swapped || err != nil {
			t.Errorf("where it was seen: %t, %v", swapped, err)
		}
	})
}

func TestUnavailable(t *testing.T) {
	s := store.New[string](redistest.Away(t), "t:")
	_, get := s.Get(t.Context(), "acme", "a")
	_, look := s.Peek(t.Context(), "acme", "a")
	_, _, swap := s.Swap(t.Context(), "acme", entry{ID: "a"}, kept("a"))
	_, entries := s.Entries(t.Context(), "acme", "all")
	_, versions := s.Versions(t.Context(), []string{"acme"})
	for name, err := range map[string]error{"Get": get, "Look": look, "Swap": swap, "Entries": entries, "Versions": versions} {
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v, want %v", name, err, store.ErrUnavailable)
		}
	}
}

// What changed between two versions is known as long as every change in between is
// listed; else all records have to be read.
func TestChanged(t *testing.T) {
	redistest.Each(t, func(t *testing.T, r redistest.Redis) {
		s := store.New[string](r.Client, "p:")
		change := func(id string, text *string) string {
			t.Helper()
			have, err := s.Get(t.Context(), "acme", id)
			if err != nil {
				t.Fatal(err)
			}
			e, done, err := s.Swap(t.Context(), "acme", have, write{Record: text, Version: true})
			if err != nil || !done || e.Version == "" {
				t.Fatalf("write %s: %+v, %t, %v", id, e, done, err)
			}
			return e.Version
		}
		first := change("a", new("one"))
		change("b", new("one"))
		change("a", new("two"))
		change("b", nil)
		last := change("c", new("three"))
		want := func(since, until string, records map[string]string, known bool) {
			t.Helper()
			version, entries, ok, err := s.Changed(t.Context(), "acme", since, until)
			if err != nil || ok != known {
				t.Fatalf("Changed(%q, %q) = %t, %v, want %t", since, until, ok, err, known)
			}
			got := map[string]string{}
			for _, e := range entries {
				got[e.ID] = "gone"
				if e.Record != nil {
					got[e.ID] = *e.Record
				}
			}
			if known && (version == since || !cmp.Equal(got, records)) {
				t.Errorf("Changed(%q, %q) = %q, %v, want %v", since, until, version, got, records)
			}
		}
		want(first, last, map[string]string{"a": "two", "b": "gone", "c": "three"}, true)
		want("", last, map[string]string{"a": "two", "b": "gone", "c": "three"}, true)
		want(first, first, map[string]string{"a": "two", "b": "gone", "c": "three"}, false) // read before the changes
		want("another", last, nil, false)
		want(first, "another", nil, false)

		// A gateway of an earlier version lists nothing.
		if err := r.Client.Set(t.Context(), "p:{acme}#", "unlisted", 0).Err(); err != nil {
			t.Fatal(err)
		}
		want(last, "unlisted", nil, false)
		after := change("d", new("four"))
		want(last, after, nil, false)
		want("unlisted", after, map[string]string{"d": "four"}, true)

		for range 300 {
			change("d", new("five"))
		}
		end := change("d", new("six"))
		want("unlisted", end, nil, false)
		if n, err := r.Client.LLen(t.Context(), "p:{acme}#changes").Result(); err != nil || n != 256 {
			t.Errorf("%d changes are kept (%v), want 256", n, err)
		}
	})
}
