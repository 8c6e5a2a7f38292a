package platform

import "slices"

// table holds the records of one kind in the order they were made, and knows
// which of them changed since they were last written down. The zero value is
// not usable; see newTable.
type table[T any] struct {
	noun  string // what a record is called
	byID  map[string]*T
	order []*T
	seqs  map[string]uint64 // place in the order, for the data file
	next  uint64
	dirty map[string]bool // nil when nothing is written down
}

func newTable[T any](noun string) table[T] {
	return table[T]{noun: noun, byID: map[string]*T{}, seqs: map[string]uint64{}}
}

func (t *table[T]) get(id string) *T { return t.byID[id] }

// own returns the record with the id, or the refusal of a request about it.
func (t *table[T]) own(id string) (*T, error) {
	if v := t.byID[id]; v != nil {
		return v, nil
	}
	return nil, notFound(t.noun)
}

func (t *table[T]) has(id string) bool { return t.byID[id] != nil }

func (t *table[T]) add(id string, v *T) {
	t.byID[id] = v
	t.order = append(t.order, v)
	t.next++
	t.seqs[id] = t.next
	t.touch(id)
}

// touch marks a record as changed, if the table is kept in a data file.
func (t *table[T]) touch(id string) {
	if t.dirty != nil {
		t.dirty[id] = true
	}
}

func (t *table[T]) remove(id string) {
	v := t.byID[id]
	if v == nil {
		return
	}
	delete(t.byID, id)
	delete(t.seqs, id)
	if i := slices.Index(t.order, v); i >= 0 {
		t.order = slices.Delete(t.order, i, i+1)
	}
	t.touch(id)
}

// empty removes every record.
func (t *table[T]) empty() {
	for id := range t.byID {
		t.touch(id)
	}
	clear(t.byID)
	clear(t.seqs)
	t.order = nil
}

func (t *table[T]) len() int { return len(t.order) }

// appendList writes an array and the brace that closes the object around it.
func appendList[T any](b []byte, list []T, one func([]byte, T) []byte) []byte {
	return append(appendArray(b, list, one), '}')
}
