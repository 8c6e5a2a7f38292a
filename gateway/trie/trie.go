package trie

import (
	"hash/maphash"
	"iter"
	"math/bits"
)

const (
	// width is the number of bits of a hash that one level of a map looks at.
	width = 5
	// levels is how many levels a hash is good for. Below them entries stand in a list.
	levels = 64 / width
)

// Map maps keys to values. The zero value is an empty map. It is immutable and safe for concurrent use.
type Map[K comparable, V any] struct {
	root *node[K, V]
	len  int
}

// node is a level of a map: a child for each bit that is set, in the order of the bits. A child is a node or an entry.
type node[K comparable, V any] struct {
	set      uint32
	children []child[K, V]
}

// child is a node, or else an entry and, below the last level, those with the same hash.
type child[K comparable, V any] struct {
	node  *node[K, V]
	entry *entry[K, V]
}

type entry[K comparable, V any] struct {
	key   K
	value V
	hash  uint64
	next  *entry[K, V]
}

// seed is that of every map of the process.
var seed = maphash.MakeSeed() //nolint:gochecknoglobals // drawn once, never changed

// Len returns the number of entries.
func (m Map[K, V]) Len() int { return m.len }

// Get returns the value of a key, and false when there is none.
func (m Map[K, V]) Get(key K) (value V, ok bool) {
	if m.root == nil {
		return value, false
	}
	hash, n := maphash.Comparable(seed, key), m.root
	for rest := hash; ; rest >>= width {
		at, has := n.find(rest)
		if !has {
			return value, false
		}
		c := n.children[at]
		if n = c.node; n != nil {
			continue
		}
		for e := c.entry; e != nil; e = e.next {
			if e.key == key {
				return e.value, true
			}
		}
		return value, false
	}
}

// With returns a map in which a key has a value, and all others have theirs.
func (m Map[K, V]) With(key K, value V) Map[K, V] {
	e := &entry[K, V]{key: key, value: value, hash: maphash.Comparable(seed, key)}
	root, added := m.root.with(e, 0)
	if added {
		return Map[K, V]{root, m.len + 1}
	}
	return Map[K, V]{root, m.len}
}

// Without returns a map without a key.
func (m Map[K, V]) Without(key K) Map[K, V] {
	if _, ok := m.Get(key); !ok {
		return m
	}
	return Map[K, V]{m.root.without(key, maphash.Comparable(seed, key), 0), m.len - 1}
}

// All yields the entries in no particular order.
func (m Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { m.root.all(yield) }
}

// find returns where the child is, or would be, that the lowest bits of a hash name, and whether there is one.
func (n *node[K, V]) find(hash uint64) (at int, has bool) {
	bit := uint32(1) << (hash & (1<<width - 1))
	return bits.OnesCount32(n.set & (bit - 1)), n.set&bit != 0
}

// with returns a node at a level with an entry, and whether it has one more.
func (n *node[K, V]) with(e *entry[K, V], level int) (_ *node[K, V], added bool) {
	rest := e.hash >> (level * width)
	if n == nil {
		return &node[K, V]{1 << (rest & (1<<width - 1)), []child[K, V]{{entry: e}}}, true
	}
	at, has := n.find(rest)
	next := &node[K, V]{set: n.set}
	if !has {
		next.set |= 1 << (rest & (1<<width - 1))
		next.children = make([]child[K, V], len(n.children)+1)
		copy(next.children, n.children[:at])
		next.children[at].entry = e
		copy(next.children[at+1:], n.children[at:])
		return next, true
	}
	next.children = make([]child[K, V], len(n.children))
	copy(next.children, n.children)
	next.children[at], added = n.children[at].with(e, level+1)
	return next, added
}

// with returns a child, of a node one level up, with an entry, and whether it has one more.
func (c child[K, V]) with(e *entry[K, V], level int) (_ child[K, V], added bool) {
	switch {
	case c.node != nil:
		n, added := c.node.with(e, level)
		return child[K, V]{node: n}, added
	case level < levels && (c.entry.key != e.key):
		n, _ := (*node[K, V])(nil).with(c.entry, level)
		n, _ = n.with(e, level)
		return child[K, V]{node: n}, true
	}
	others, had := c.entry.without(e.key)
	one := *e
	one.next = others
	return child[K, V]{entry: &one}, !had
}

// without returns the entries of a list but that of a key, and whether it had that.
func (e *entry[K, V]) without(key K) (_ *entry[K, V], had bool) {
	switch {
	case e == nil:
		return nil, false
	case e.key == key:
		return e.next, true
	}
	rest, had := e.next.without(key)
	return &entry[K, V]{e.key, e.value, e.hash, rest}, had
}

// without returns a node at a level without a key that it has, nil when that leaves nothing.
func (n *node[K, V]) without(key K, hash uint64, level int) *node[K, V] {
	rest := hash >> (level * width)
	at, _ := n.find(rest)
	c := n.children[at]
	if c.node != nil {
		c.node = c.node.without(key, hash, level+1)
	} else {
		c.entry, _ = c.entry.without(key)
	}
	if c.node != nil || c.entry != nil {
		next := &node[K, V]{n.set, make([]child[K, V], len(n.children))}
		copy(next.children, n.children)
		next.children[at] = c
		return next
	}
	if len(n.children) == 1 {
		return nil
	}
	next := &node[K, V]{n.set &^ (1 << (rest & (1<<width - 1))), make([]child[K, V], 0, len(n.children)-1)}
	next.children = append(append(next.children, n.children[:at]...), n.children[at+1:]...)
	return next
}

// all yields the entries of a node, and reports whether there may be more.
func (n *node[K, V]) all(yield func(K, V) bool) bool {
	if n == nil {
		return true
	}
	for _, c := range n.children {
		if c.node != nil && !c.node.all(yield) {
			return false
		}
		for e := c.entry; e != nil; e = e.next {
			if !yield(e.key, e.value) {
				return false
			}
		}
	}
	return true
}
