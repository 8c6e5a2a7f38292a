package trie

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A map behaves like a map of the language, and those that it came from stay as they were.
func TestLikeAMap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var m Map[string, int]
	want := make(map[string]int)
	type old struct {
		m    Map[string, int]
		want map[string]int
	}
	var before []old
	for i := range 20_000 {
		key := fmt.Sprint(random.IntN(3000))
		if random.IntN(3) == 0 {
			m = m.Without(key)
			delete(want, key)
		} else {
			m = m.With(key, i)
			want[key] = i
		}
		if got, ok := m.Get(key); got != want[key] || ok != (want[key] != 0 || i == 0) {
			t.Fatalf("step %d: %s is %d, %t, want %d", i, key, got, ok, want[key])
		}
		if i%2500 == 0 {
			before = append(before, old{m, maps.Clone(want)})
		}
	}
	for _, b := range append(before, old{m, want}) {
		if diff := cmp.Diff(b.want, maps.Collect(b.m.All())); diff != "" || b.m.Len() != len(b.want) {
			t.Errorf("%d entries (-want +got):\n%s", b.m.Len(), diff)
		}
	}
}

// Keys of one hash stand beside each other.
func TestSameHash(t *testing.T) {
	var root *node[string, int]
	for i, key := range []string{"a", "b", "c", "b"} {
		var added bool
		root, added = root.with(&entry[string, int]{key: key, value: i, hash: 7}, 0)
		if want := i < 3; added != want {
			t.Errorf("%s is one more: %t, want %t", key, added, want)
		}
	}
	root = root.without("a", 7, 0)
	if diff := cmp.Diff(map[string]int{"b": 3, "c": 2}, maps.Collect(Map[string, int]{root, 2}.All())); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if root = root.without("b", 7, 0).without("c", 7, 0); root != nil {
		t.Error("a map without its last entry is not empty")
	}
}

// All ends where it is told to.
func TestAllEnds(t *testing.T) {
	m := Map[int, int]{}.With(1, 1).With(2, 2).With(3, 3)
	n := 0
	for range m.All() {
		n++
		break
	}
	if n != 1 {
		t.Errorf("%d entries after the first, want none", n-1)
	}
}

// A change costs as much beside many entries as beside few.
func TestChangeCosts(t *testing.T) {
	cost := func(n int) float64 {
		var m Map[int, int]
		for i := range n {
			m = m.With(i, i)
		}
		return testing.AllocsPerRun(100, func() { m.With(-1, 0) })
	}
	if few, many := cost(100), cost(100_000); many > few+8 {
		t.Errorf("a change beside 100,000 allocates %.0f times, beside 100 %.0f", many, few)
	}
}
