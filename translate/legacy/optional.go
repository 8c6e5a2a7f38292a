package legacy

// Optional is a setting in a caller's input. The zero value means that the setting is absent.
type Optional[T any] struct {
	value T
	set   bool
}

// Given returns an Optional with a value.
func Given[T any](v T) Optional[T] { return Optional[T]{v, true} }

// OptionalOf returns a member of an input as an Optional. The Optional is absent if the member is not a T. A dialect must first remove the
// values that it treats as absent.
func OptionalOf[T any, M ~map[string]any](input M, name string) Optional[T] {
	v, ok := input[name].(T)
	return Optional[T]{v, ok}
}

// IsSet reports whether the setting has a value.
func (w Optional[T]) IsSet() bool { return w.set }

// Get returns the value. ok is false if the setting is absent.
func (w Optional[T]) Get() (v T, ok bool) { return w.value, w.set }

// Value returns the value, or the zero value if the setting is absent.
func (w Optional[T]) Value() T { return w.value }

// Or returns the value, or other if the setting is absent.
func (w Optional[T]) Or(other T) T {
	if w.set {
		return w.value
	}
	return other
}

// Apply calls a setter with the value. It does nothing if the setting is absent.
func (w Optional[T]) Apply(set func(T)) {
	if w.set {
		set(w.value)
	}
}

// PassThrough collects settings that v2 accepts unchanged. Settings with translation rules are Optionals instead.
// Keys are the names in v2 bodies.
type PassThrough map[string]any

// Set sets a member unless it is already set.
func (p PassThrough) Set(member string, value any) {
	if p[member] == nil {
		p[member] = value
	}
}
