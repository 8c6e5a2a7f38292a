package policyinput

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Cache keeps verdicts by the part of the input that was read for them. It belongs
// to one compiled state, so the revision need not be part of the key.
//
// It is sound because an evaluation is a function of exactly that part: no clock, no
// randomness, no network, constant data. Verdicts that depend on the time are not
// kept at all, exceptions are applied afterwards, and an error is never remembered.
type Cache[V any] struct {
	verdicts *lru.Cache[Key, V]
	buffers  sync.Pool
	size     int
}

// Key is the SHA-256 digest of an injective encoding of the members that policies read.
type Key [sha256.Size]byte

// NewCache returns a memory of up to size verdicts, which is positive.
func NewCache[V any](size int) (*Cache[V], error) {
	cache, err := lru.New[Key, V](size)
	if err != nil {
		return nil, err
	}
	return &Cache[V]{verdicts: cache, buffers: sync.Pool{New: func() any { return new([]byte) }}, size: size}, nil
}

// Size is how many verdicts it keeps at most.
func (m *Cache[V]) Size() int { return m.size }

// Key returns the key of a verdict about a document, for which reads was read; of
// tells verdicts about one document apart. ok is false when the verdict may not be
// kept: it depends on the time, or the document holds a value that has no encoding,
// which evaluation will refuse.
func (m *Cache[V]) Key(d *Document, reads *Projection, of int) (key Key, ok bool) {
	if reads.Touches("time") {
		return key, false
	}
	buf, _ := m.buffers.Get().(*[]byte)
	defer m.buffers.Put(buf)
	b, err := appendPart(binary.AppendVarint((*buf)[:0], int64(of)), d.part(), reads)
	if err != nil {
		return key, false
	}
	*buf = b
	return sha256.Sum256(b), true
}

// Get returns the verdict that was added under a key.
func (m *Cache[V]) Get(key Key) (V, bool) { return m.verdicts.Get(key) }

// Add keeps a verdict.
func (m *Cache[V]) Add(key Key, verdict V) { m.verdicts.Add(key, verdict) }
