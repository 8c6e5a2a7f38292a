package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/translate"
)

// Factory returns an empty store and a function that lets time pass for it.
type Factory func(t *testing.T) (store translate.Store, advance func(time.Duration))

// Test runs the contract; every case gets a store of its own.
func Test(t *testing.T, open Factory) {
	t.Helper()
	cases := []struct {
		name string
		run  func(t *testing.T, s translate.Store, advance func(time.Duration))
	}{
		{"missing", missing},
		{"put replaces", putReplaces},
		{"values are copied", valuesAreCopied},
		{"delete", deletes},
		{"ttl", ttl},
		{"zero ttl stays", zeroTTL},
		{"put renews the ttl", renews},
		{"list by account and kind", lists},
		{"list leaves out the expired", listsLive},
		{"awkward names", awkwardNames},
		{"add concurrently", addsConcurrently},
		{"add all", addsAll},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			store, advance := open(t)
			c.run(t, store, advance)
		})
	}
}

func key(id string) translate.Key {
	return translate.Key{Account: "acme", Kind: translate.KindPod, ID: id}
}

func put(t *testing.T, s translate.Store, k translate.Key, value string, ttl time.Duration) {
	t.Helper()
	if err := s.Put(t.Context(), k, json.RawMessage(value), ttl); err != nil {
		t.Fatalf("Put(%v): %v", k, err)
	}
}

// want checks what Get returns; "" stands for nothing.
func want(t *testing.T, s translate.Store, k translate.Key, value string) {
	t.Helper()
	got, ok, err := s.Get(t.Context(), k)
	if err != nil {
		t.Fatalf("Get(%v): %v", k, err)
	}
	if string(got) != value || ok != (value != "") {
		t.Errorf("Get(%v) = %q, %t, want %q", k, got, ok, value)
	}
}

// find asks for some ids; it must find the entries that List has of them.
func find(t *testing.T, s translate.Store, account, kind string, ids ...string) {
	t.Helper()
	values, err := s.Find(t.Context(), account, kind, ids)
	if err != nil || len(values) != len(ids) {
		t.Fatalf("Find(%q, %q, %q) = %q, %v, want one for each", account, kind, ids, values, err)
	}
	all := list(t, s, account, kind)
	for i, id := range ids {
		if got, want := values[i], all[id]; got != want {
			t.Errorf("Find(%q, %q): %q = %q, List has %q", account, kind, id, got, want)
		}
	}
}

func list(t *testing.T, s translate.Store, account, kind string) map[string]string {
	t.Helper()
	values, err := s.List(t.Context(), account, kind)
	if err != nil {
		t.Fatalf("List(%q, %q): %v", account, kind, err)
	}
	if values == nil {
		t.Errorf("List(%q, %q) = nil, want an empty map at least", account, kind)
	}
	texts := make(map[string]string, len(values))
	for id, value := range values {
		texts[id] = string(value)
	}
	return texts
}

func missing(t *testing.T, s translate.Store, _ func(time.Duration)) {
	want(t, s, key("p1"), "")
	if got := list(t, s, "acme", translate.KindPod); len(got) != 0 {
		t.Errorf("List of an empty store = %v", got)
	}
}

func putReplaces(t *testing.T, s translate.Store, _ func(time.Duration)) {
	put(t, s, key("p1"), `{"a":1}`, time.Hour)
	put(t, s, key("p1"), `{"a":2}`, time.Hour)
	want(t, s, key("p1"), `{"a":2}`)
}

func valuesAreCopied(t *testing.T, s translate.Store, _ func(time.Duration)) {
	value := []byte(`"abc"`)
	if err := s.Put(t.Context(), key("p1"), value, 0); err != nil {
		t.Fatal(err)
	}
	value[1] = 'X'
	got, _, err := s.Get(t.Context(), key("p1"))
	if err != nil {
		t.Fatal(err)
	}
	got[1] = 'Y'
	want(t, s, key("p1"), `"abc"`)
}

func deletes(t *testing.T, s translate.Store, _ func(time.Duration)) {
	put(t, s, key("p1"), `1`, 0)
	for range 2 { // the second one finds nothing, which is no error
		if err := s.Delete(t.Context(), key("p1")); err != nil {
			t.Fatalf("Delete: %v", err)
		}
	}
	want(t, s, key("p1"), "")
	if got := list(t, s, "acme", translate.KindPod); len(got) != 0 {
		t.Errorf("List after Delete = %v", got)
	}
}

func ttl(t *testing.T, s translate.Store, advance func(time.Duration)) {
	put(t, s, key("p1"), `1`, time.Hour)
	advance(59 * time.Minute)
	want(t, s, key("p1"), `1`)
	advance(2 * time.Minute)
	want(t, s, key("p1"), "")
}

func zeroTTL(t *testing.T, s translate.Store, advance func(time.Duration)) {
	put(t, s, key("p1"), `1`, 0)
	advance(1000 * 24 * time.Hour)
	want(t, s, key("p1"), `1`)
}

func renews(t *testing.T, s translate.Store, advance func(time.Duration)) {
	put(t, s, key("p1"), `1`, time.Hour)
	advance(50 * time.Minute)
	put(t, s, key("p1"), `2`, time.Hour)
	advance(50 * time.Minute)
	want(t, s, key("p1"), `2`)
}

func lists(t *testing.T, s translate.Store, _ func(time.Duration)) {
	put(t, s, key("p1"), `1`, time.Hour)
	put(t, s, key("p2"), `2`, 0)
	put(t, s, translate.Key{Account: "acme", Kind: translate.KindTemplate, ID: "p1"}, `3`, 0)
	put(t, s, translate.Key{Account: "globex", Kind: translate.KindPod, ID: "p1"}, `4`, 0)
	if diff := cmp.Diff(map[string]string{"p1": "1", "p2": "2"}, list(t, s, "acme", translate.KindPod)); diff != "" {
		t.Errorf("List (-want +got):\n%s", diff)
	}
	want(t, s, translate.Key{Account: "globex", Kind: translate.KindPod, ID: "p1"}, `4`)
}

func listsLive(t *testing.T, s translate.Store, advance func(time.Duration)) {
	put(t, s, key("short"), `1`, time.Minute)
	put(t, s, key("long"), `2`, time.Hour)
	advance(2 * time.Minute)
	for range 2 { // the first call may tidy up
		if diff := cmp.Diff(map[string]string{"long": "2"}, list(t, s, "acme", translate.KindPod)); diff != "" {
			t.Errorf("List (-want +got):\n%s", diff)
		}
	}
	put(t, s, key("short"), `3`, time.Minute)
	if got := list(t, s, "acme", translate.KindPod)["short"]; got != "3" {
		t.Errorf("List after the key came back = %q, want 3", got)
	}
}

// awkwardNames: separators inside names must not make two keys one.
func awkwardNames(t *testing.T, s translate.Store, _ func(time.Duration)) {
	names := []string{"a", "a:b", "a%3Ab", "a}b", "a{b", "a/b", "a b", "ä", "\x00"}
	for i, account := range names {
		for j, id := range names {
			k := translate.Key{Account: account, Kind: translate.KindPod, ID: id}
			put(t, s, k, fmt.Sprintf("%d%02d", i+1, j), 0)
		}
	}
	for i, account := range names {
		for j, id := range names {
			want(t, s, translate.Key{Account: account, Kind: translate.KindPod, ID: id}, fmt.Sprintf("%d%02d", i+1, j))
		}
		if got := list(t, s, account, translate.KindPod); len(got) != len(names) {
			t.Errorf("List(%q) has %d records, want %d", account, len(got), len(names))
		}
		find(t, s, account, translate.KindPod, append(slices.Clone(names[1:]), "absent")...)
		find(t, s, account, translate.KindPod, "absent", names[0], names[0])
		find(t, s, account, translate.KindPod)
		find(t, s, account+"x", translate.KindPod, names[0])
	}
}

// addsConcurrently: of records that are added for one key at once, one is kept.
func addsConcurrently(t *testing.T, s translate.Store, _ func(time.Duration)) {
	var kept [16]string
	var group sync.WaitGroup
	for i := range kept {
		group.Go(func() {
			if err := s.AddAll(t.Context(), "acme", translate.KindPod, map[string]json.RawMessage{"p1": json.RawMessage(fmt.Sprint(i))}, time.Hour); err != nil {
				t.Errorf("AddAll: %v", err)
			}
			value, ok, err := s.Get(t.Context(), key("p1"))
			if kept[i] = string(value); !ok || err != nil {
				t.Errorf("Get after AddAll = %t, %v", ok, err)
			}
		})
	}
	group.Wait()
	if all := slices.Compact(kept[:]); len(all) != 1 {
		t.Errorf("16 concurrent calls of AddAll met the values %q, want the first one", all)
	}
}

// addsAll: of many records, those that are there stay as they are.
func addsAll(t *testing.T, s translate.Store, advance func(time.Duration)) {
	put(t, s, key("p0"), `"kept"`, time.Hour)
	put(t, s, key("p1"), `"expired"`, time.Minute)
	advance(2 * time.Minute)
	const n = 1200 // more than one batch
	values := make(map[string]json.RawMessage, n)
	for i := range n {
		values[fmt.Sprintf("p%d", i)] = json.RawMessage(fmt.Sprint(i))
	}
	for range 2 { // the second time all are there
		if err := s.AddAll(t.Context(), "acme", translate.KindPod, values, time.Hour); err != nil {
			t.Fatalf("AddAll: %v", err)
		}
	}
	if err := s.AddAll(t.Context(), "acme", translate.KindPod, nil, time.Hour); err != nil {
		t.Errorf("AddAll of nothing: %v", err)
	}
	got := list(t, s, "acme", translate.KindPod)
	want := make(map[string]string, n)
	for id, value := range values {
		want[id] = string(value)
	}
	want["p0"] = `"kept"`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("List after AddAll (-want +got):\n%s", diff)
	}
	advance(2 * time.Hour)
	if got := list(t, s, "acme", translate.KindPod); len(got) != 0 {
		t.Errorf("%d records left after their time", len(got))
	}
	if err := s.AddAll(t.Context(), "acme", translate.KindPod, map[string]json.RawMessage{"p2": json.RawMessage("1")}, 0); err != nil {
		t.Fatal(err)
	}
	advance(1000 * 24 * time.Hour)
	if got := list(t, s, "acme", translate.KindPod)["p2"]; got != "1" {
		t.Errorf("a record without a time to live = %q, want 1", got)
	}
}
