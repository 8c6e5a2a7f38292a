package legacy

import (
	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/v2"
)

// Optional is a caller's wish about one setting: nothing (the zero value), that it shall have
// no value (Null), or a value (Given).
type Optional[T any] struct {
	value      T
	set, given bool
}

// BodyID is the wish for a value.
func Given[T any](v T) Optional[T] { return Optional[T]{v, true, true} }

// Null is the wish for no value.
func Null[T any]() Optional[T] { return Optional[T]{set: true} }

// OptionalOf is the wish for the member of an input that is a T, absent when there is
// none. Dialects leave out what to them is the same as absent.
func OptionalOf[T any, M ~map[string]any](input M, name string) Optional[T] {
	v, ok := input[name].(T)
	return Optional[T]{v, ok, ok}
}

// IsSet reports whether the caller says anything, null included.
func (w Optional[T]) IsSet() bool { return w.set }

// Get returns the value; ok is false when none was given.
func (w Optional[T]) Get() (v T, ok bool) { return w.value, w.given }

// Value returns the value, the zero value when none was given.
func (w Optional[T]) Value() T { return w.value }

// Or returns the value, other when none was given.
func (w Optional[T]) Or(other T) T {
	if w.given {
		return w.value
	}
	return other
}

// Apply hands a given value to a setter.
func (w Optional[T]) Apply(set func(T)) {
	if w.given {
		set(w.value)
	}
}

// ApplyOrZero hands on every given value, null as the zero value.
func (w Optional[T]) ApplyOrZero(set func(T)) {
	if w.set {
		set(w.value)
	}
}

// PassThrough are a caller's wishes that v2 takes as they are. What has a rule here is a Wish.
type PassThrough []passThroughField

type passThroughField struct {
	member string // of v2's bodies
	value  any
}

// Set says that a member of which nothing is said shall have a value.
func (p *PassThrough) Set(member string, value any) {
	if p.Get(member) != nil {
		return
	}
	switch v := value.(type) {
	case int64:
		value = translate.Int(v)
	case []string:
		value = translate.List(v)
	}
	*p = append(*p, passThroughField{member, value})
}

// Get returns the value that a member shall have, nil for none.
func (p *PassThrough) Get(member string) any {
	for _, wish := range *p {
		if wish.member == member {
			return wish.value
		}
	}
	return nil
}

// Apply writes the wishes into a body.
func (p *PassThrough) Apply(b v2.Object) {
	for _, wish := range *p {
		b.Put(wish.member, wish.value)
	}
}
