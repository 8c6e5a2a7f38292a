package v2

import (
	"maps"

	"github.com/tollgate-dev/tollgate/translate"
)

// Object is a decoded JSON object, the base of every view. Reading never fails: a
// member that is absent or of another type reads as the zero value. A view of
// anything but an object reads as empty and must not be written.
type Object struct {
	// Members belong to whoever decoded the body, and are changed by the setters.
	Members map[string]any
}

// ObjectOf views a decoded body.
func ObjectOf(body any) Object { return Object{translate.Members(body)} }

// NewObject returns an empty body to write.
func NewObject() Object { return Object{map[string]any{}} }

// Empty reports whether the body has no members.
func (o Object) Empty() bool { return len(o.Members) == 0 }

// Has reports whether the body has the member, null included.
func (o Object) Has(name string) bool {
	_, ok := o.Members[name]
	return ok
}

// ID returns the platform's id of the resource.
func (o Object) ID() string { return o.text("id") }

// SetID sets the id of a body that is shown, never sent.
func (o Object) SetID(id string) { o.set(id, "id") }

// Name returns the name of the resource.
func (o Object) Name() string { return o.text("name") }

// SetName sets the name of the resource.
func (o Object) SetName(name string) { o.set(name, "name") }

func (o Object) at(path ...string) any { return translate.At(any(o.Members), path...) }

func (o Object) text(path ...string) string { return translate.Text(any(o.Members), path...) }

func (o Object) flag(path ...string) bool { return translate.Flag(any(o.Members), path...) }

func (o Object) whole(path ...string) int64 { return translate.Whole(any(o.Members), path...) }

func (o Object) items(path ...string) []any { return translate.Items(any(o.Members), path...) }

func (o Object) texts(path ...string) []string { return translate.Texts(any(o.Members), path...) }

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

// clone copies the members of an object, which are shared below the first level.
func clone(members map[string]any) map[string]any { return maps.Clone(members) }
