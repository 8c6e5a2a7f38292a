package platform

import "slices"

// table holds the records of one kind in the order they were made.
type table[T any] struct {
	byID  map[string]*T
	order []*T
	seqs  map[string]uint64 // place in the order, for the data file
	next  uint64
	keep  func(id string) // notes a change for the data file; nil without one
}

func (t *table[T]) get(id string) *T { return t.byID[id] }

// own returns the record with the id, or the refusal of a request about it by the noun for it.
func (t *table[T]) own(id, noun string) (*T, error) {
	if v := t.byID[id]; v != nil {
		return v, nil
	}
	return nil, notFound(noun)
}

func (t *table[T]) has(id string) bool { return t.byID[id] != nil }

func (t *table[T]) add(id string, v *T) {
	t.put(id, v, t.next+1)
	t.touch(id)
}

// put adds a record at a place after all others.
func (t *table[T]) put(id string, v *T, place uint64) {
	if t.byID == nil {
		t.byID, t.seqs = map[string]*T{}, map[string]uint64{}
	}
	t.byID[id], t.seqs[id], t.next = v, place, place
	t.order = append(t.order, v)
}

// touch marks a record as changed, if the table is kept in a data file.
func (t *table[T]) touch(id string) {
	if t.keep != nil {
		t.keep(id)
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
