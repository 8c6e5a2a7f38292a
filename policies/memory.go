package policies

import (
	"crypto/sha256"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
)

// memory keeps verdicts by the part of the input the policies read. It belongs
// to one compiled state, so the revision need not be part of the key.
//
// It is sound because an evaluation is a function of exactly that part: no
// clock, no randomness, no network, constant data. Verdicts that depend on the
// time are not kept at all, exceptions are applied afterwards, and an error is
// never remembered. Keys are SHA-256 digests of an injective encoding.
type memory struct {
	verdicts *lru.Cache[[sha256.Size]byte, *Decision]
	buffers  sync.Pool
}

// newMemory keeps up to size verdicts; nil keeps none.
func newMemory(size int, reads *projection) (*memory, error) {
	if size == 0 || reads.reads("time") {
		return nil, nil
	}
	cache, err := lru.New[[sha256.Size]byte, *Decision](size)
	if err != nil {
		return nil, err
	}
	return &memory{verdicts: cache, buffers: sync.Pool{New: func() any { return new([]byte) }}}, nil
}

// key digests what the policies read of a document; ok is false when it holds
// a value that has no encoding, which evaluation will refuse.
func (m *memory) key(doc document, reads *projection) (key [sha256.Size]byte, ok bool) {
	buf, _ := m.buffers.Get().(*[]byte)
	defer m.buffers.Put(buf)
	b, err := appendKey((*buf)[:0], doc, reads)
	if err != nil {
		return key, false
	}
	*buf = b
	return sha256.Sum256(b), true
}
