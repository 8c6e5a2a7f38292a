package v2

import (
	"github.com/tollgate-dev/tollgate/translate"
)

// Object is a view of a decoded JSON object, and the base of all views. Reads never fail: for a missing member or a member of another type,
// they return the zero value. A view of a value that is not an object is empty and must not be written to.
type Object struct {
	// Members belongs to the decoded body; setters modify it.
	Members map[string]any
	// record, if not nil, is used in place of Members.
	record translate.Record
}

// objectOf returns a view of a decoded body.
func objectOf(body any) Object {
	if r, ok := body.(translate.Record); ok {
		return Object{record: r}
	}
	return Object{Members: translate.Members(body)}
}

// NewObject returns an empty body to write to.
func NewObject() Object { return Object{Members: map[string]any{}} }

// Empty reports whether the body has no members.
func (o Object) Empty() bool { return len(translate.Members(o.body())) == 0 }

// Has reports whether the body has the member, even if it is null.
func (o Object) Has(name string) bool {
	if o.record != nil {
		_, ok := o.record.Get(name)
		return ok
	}
	_, ok := o.Members[name]
	return ok
}

// body returns the viewed value.
func (o Object) body() any {
	if o.record != nil {
		return o.record
	}
	return o.Members
}

// ID returns the platform's id of the resource.
func (o Object) ID() string { return o.text("id") }

// SetID sets the id. Use it only for bodies that are returned to callers.
func (o Object) SetID(id string) { o.set(id, "id") }

// Name returns the name of the resource.
func (o Object) Name() string { return o.text("name") }

// SetName sets the name of the resource.
func (o Object) SetName(name string) { o.set(name, "name") }

func (o Object) at(path ...string) any { return translate.At(o.body(), path...) }

func (o Object) text(path ...string) string { return translate.Text(o.body(), path...) }

func (o Object) flag(path ...string) bool { return translate.Flag(o.body(), path...) }

func (o Object) whole(path ...string) int64 { return translate.Whole(o.body(), path...) }

func (o Object) items(path ...string) []any { return translate.Items(o.body(), path...) }

func (o Object) texts(path ...string) []string { return translate.Texts(o.body(), path...) }

// set writes one value and creates missing parent objects.
func (o Object) set(value any, path ...string) {
	m := o.Members
	for _, name := range path[:len(path)-1] {
		next, ok := m[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			m[name] = next
		}
		m = next
	}
	m[path[len(path)-1]] = value
}
