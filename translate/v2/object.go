package v2

import (
	"github.com/tollgate-dev/tollgate/translate"
)

// Object is a decoded JSON object, the base of every view. Reading never fails: a
// member that is absent or of another type reads as the zero value. A view of
// anything but an object reads as empty and must not be written.
type Object struct {
	// Members belong to whoever decoded the body, and are changed by the setters.
	Members map[string]any
	// record is viewed in place of Members, if not nil.
	record translate.Record
}

// ObjectOf views a decoded body.
func ObjectOf(body any) Object {
	if r, ok := body.(translate.Record); ok {
		return Object{record: r}
	}
	return Object{Members: translate.Members(body)}
}

// NewObject returns an empty body to write.
func NewObject() Object { return Object{Members: map[string]any{}} }

// Empty reports whether the body has no members.
func (o Object) Empty() bool { return len(translate.Members(o.body())) == 0 }

// Has reports whether the body has the member, null included.
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

// SetID sets the id of a body that is shown, never sent.
func (o Object) SetID(id string) { o.set(id, "id") }

// Name returns the name of the resource.
func (o Object) Name() string { return o.text("name") }

// SetName sets the name of the resource.
func (o Object) SetName(name string) { o.set(name, "name") }

// Put writes a member that no rule looks at.
func (o Object) Put(member string, value any) { o.set(value, member) }

func (o Object) at(path ...string) any { return translate.At(o.body(), path...) }

func (o Object) text(path ...string) string { return translate.Text(o.body(), path...) }

func (o Object) flag(path ...string) bool { return translate.Flag(o.body(), path...) }

func (o Object) whole(path ...string) int64 { return translate.Whole(o.body(), path...) }

func (o Object) items(path ...string) []any { return translate.Items(o.body(), path...) }

func (o Object) texts(path ...string) []string { return translate.Texts(o.body(), path...) }

// set writes one value and makes the objects that lead to it.
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
