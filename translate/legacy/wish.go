package legacy

import (
	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/v2"
)

// Wish is a caller's wish about one setting: nothing (the zero value), that it shall have
// no value (Null), or a value (Given).
type Wish[T any] struct {
	value       T
	said, given bool
}

// Given is the wish for a value.
func Given[T any](v T) Wish[T] { return Wish[T]{v, true, true} }

// Null is the wish for no value.
func Null[T any]() Wish[T] { return Wish[T]{said: true} }

// WishOf is the wish for the member of an input that is a T, absent when there is
// none. Dialects leave out what to them is the same as absent.
func WishOf[T any, M ~map[string]any](input M, name string) Wish[T] {
	v, ok := input[name].(T)
	return Wish[T]{v, ok, ok}
}

// Said reports whether the caller says anything, null included.
func (w Wish[T]) Said() bool { return w.said }

// Get returns the value; ok is false when none was given.
func (w Wish[T]) Get() (v T, ok bool) { return w.value, w.given }

// Value returns the value, the zero value when none was given.
func (w Wish[T]) Value() T { return w.value }

// Or returns the value, other when none was given.
func (w Wish[T]) Or(other T) T {
	if w.given {
		return w.value
	}
	return other
}

// To hands a given value to a setter.
func (w Wish[T]) To(set func(T)) {
	if w.given {
		set(w.value)
	}
}

// SaidTo hands on every given value, null as the zero value.
func (w Wish[T]) SaidTo(set func(T)) {
	if w.said {
		set(w.value)
	}
}

// Plain are a caller's wishes that v2 takes as they are. What has a rule here is a Wish.
type Plain []plainWish

type plainWish struct {
	member string // of v2's bodies
	value  any
}

// Set says that a member of which nothing is said shall have a value.
func (p *Plain) Set(member string, value any) {
	if p.Get(member) != nil {
		return
	}
	switch v := value.(type) {
	case int64:
		value = translate.Int(v)
	case []string:
		value = translate.List(v)
	}
	*p = append(*p, plainWish{member, value})
}

// Get returns the value that a member shall have, nil for none.
func (p *Plain) Get(member string) any {
	for _, wish := range *p {
		if wish.member == member {
			return wish.value
		}
	}
	return nil
}

// To writes the wishes into a body.
func (p *Plain) To(b v2.Object) {
	for _, wish := range *p {
		b.Put(wish.member, wish.value)
	}
}
