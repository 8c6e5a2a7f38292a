package platform

import "slices"

// table holds the records of one kind in the order they were made. The zero
// value is not usable; see newTable.
type table[T any] struct {
	byID  map[string]*T
	order []*T
}

func newTable[T any]() table[T] { return table[T]{byID: map[string]*T{}} }

func (t *table[T]) get(id string) *T { return t.byID[id] }

func (t *table[T]) has(id string) bool { return t.byID[id] != nil }

func (t *table[T]) add(id string, v *T) {
	t.byID[id] = v
	t.order = append(t.order, v)
}

func (t *table[T]) remove(id string) {
	v := t.byID[id]
	if v == nil {
		return
	}
	delete(t.byID, id)
	if i := slices.Index(t.order, v); i >= 0 {
		t.order = slices.Delete(t.order, i, i+1)
	}
}

func (t *table[T]) len() int { return len(t.order) }
