package policyinput

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Cache caches verdicts by the part of the input that was read for them. It belongs to one compiled state, so the revision need not
// be part of the key.
//
// Caching is correct because an evaluation depends on nothing but that part: no clock, no randomness, no network, constant data.
// Verdicts that depend on the time are not cached, exceptions are applied afterwards, and errors are not cached.
type Cache[V any] struct {
	*lru.Cache[Key, V]

	buffers sync.Pool
	size    int
}

// Key is the SHA-256 digest of an injective encoding of the members that policies read.
type Key [sha256.Size]byte

// NewCache returns a cache of up to size verdicts. size must be positive.
func NewCache[V any](size int) *Cache[V] {
	cache, _ := lru.New[Key, V](size) // fails only for a size below 1
	return &Cache[V]{Cache: cache, buffers: sync.Pool{New: func() any { return new([]byte) }}, size: size}
}

// Size returns the capacity of the cache.
func (m *Cache[V]) Size() int { return m.size }

// Key returns the cache key of a verdict that was computed from the part reads of d. variant distinguishes several verdicts for the same
// document. ok is false if the verdict must not be cached, because it depends on the time or because the document contains a value that
// cannot be encoded. Such a value also makes the evaluation fail. A nil Cache caches nothing.
func (m *Cache[V]) Key(d *Document, reads *Projection, variant int) (key Key, ok bool) {
	if m == nil || reads.Touches("time") {
		return key, false
	}
	buf, _ := m.buffers.Get().(*[]byte)
	defer m.buffers.Put(buf)
	b, err := appendPart(binary.AppendVarint((*buf)[:0], int64(variant)), d.part(), reads)
	if err != nil {
		return key, false
	}
	*buf = b
	return sha256.Sum256(b), true
}
