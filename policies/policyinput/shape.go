package policyinput

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// object is decoded JSON's object.
type object = map[string]any

// shape describes an object of the document: its members, in order of name.
type shape struct {
	doc     string
	members []*member
	names   []string
	byName  map[string]*member
}

// member describes one member of an object.
type member struct {
	name, doc string
	// key is the name as a value.
	key *ast.Term
	// schema is the JSON Schema of the value, without its description.
	schema object
	// inner describes the members of the value, or of the values in it; nil for
	// none.
	inner *shape
	// whole is set if inner describes the value itself: a pointer to it.
	whole bool
	// value returns the member of a Go value: a pointer to the type that the shape
	// describes.
	value func(of any) any
	// read sets the member of such a value; nil if it follows from others.
	read func(r *reader, of any, at string, given any)
}

// part is an object of the document: a Go value and the shape that describes it.
type part struct {
	*shape
	of any
}

// absent stands for a member that is not there.
type absentValue struct{}

var absent = absentValue{}

func describe(doc string, members ...*member) *shape {
	s := &shape{doc: doc, members: members, byName: make(map[string]*member, len(members))}
	slices.SortFunc(s.members, func(a, b *member) int { return cmp.Compare(a.name, b.name) })
	for _, m := range s.members {
		s.names = append(s.names, m.name)
		m.key = ast.StringTerm(m.name)
		s.byName[m.name] = m
	}
	return s
}

// field describes a member that stands in the Go value as it does in the
// document.
func field[T, V any](name, doc string, schema object, at func(*T) *V) *member {
	return &member{
		name: name, doc: doc, schema: schema,
		value: func(of any) any { return *at(pointer[T](of)) },
		read:  func(r *reader, of any, path string, given any) { *at(pointer[T](of)) = typed[V](r, path, given) },
	}
}

// derived describes a member that follows from others.
func derived[T any](name, doc string, schema object, value func(*T) any) *member {
	return &member{name: name, doc: doc, schema: schema, value: func(of any) any { return value(pointer[T](of)) }}
}

// within describes a member that is an object with a shape of its own.
func within[T, U any](name, doc string, inner *shape, at func(*T) *U) *member {
	return &member{
		name: name, doc: doc, inner: inner, whole: true,
		value: func(of any) any { return at(pointer[T](of)) },
		read: func(r *reader, of any, path string, given any) {
			r.members(inner, at(pointer[T](of)), path, typed[object](r, path, given))
		},
	}
}

// optional describes a member that is an object with a shape of its own, absent if it is nil.
func optional[T, U any](name, doc string, inner *shape, at func(*T) **U) *member {
	return &member{
		name: name, doc: doc, inner: inner, whole: true,
		value: func(of any) any {
			if v := *at(pointer[T](of)); v != nil {
				return v
			}
			return absent
		},
		read: func(r *reader, of any, path string, given any) {
			v := new(U)
			*at(pointer[T](of)) = v
			r.members(inner, v, path, typed[object](r, path, given))
		},
	}
}

// pointer is of as what the members of a shape are described for.
func pointer[T any](of any) *T {
	p, ok := of.(*T)
	if !ok {
		panic("record: a shape is used for another type")
	}
	return p
}

// kind returns the schema of one or more JSON types.
func kind(names ...string) object {
	if len(names) == 1 {
		return object{"type": names[0]}
	}
	list := make([]any, len(names))
	for i, n := range names {
		list[i] = n
	}
	return object{"type": list}
}

// mapOf returns the schema of an object with values of one kind.
func mapOf(values any) object { return object{"type": "object", "additionalProperties": values} }

// listOf returns the schema of a list.
func listOf(items object) object { return object{"type": "array", "items": items} }

func str[T any](name, doc string, at func(*T) *string) *member {
	return field(name, doc, kind("string"), at)
}

// stringMap describes a map of strings.
func stringMap[T any](name, doc string, at func(*T) *map[string]string) *member {
	m := field(name, doc, mapOf(kind("string")), at)
	m.read = func(r *reader, of any, path string, given any) {
		out := at(pointer[T](of))
		for key, v := range typed[object](r, path, given) {
			if *out == nil {
				*out = make(map[string]string)
			}
			(*out)[key] = typed[string](r, path+"/"+key, v)
		}
	}
	return m
}

func boolean[T any](name, doc string, at func(*T) *bool) *member {
	return field(name, doc, kind("boolean"), at)
}

func whole[T any](name, doc string, at func(*T) *int64) *member {
	m := field(name, doc, kind("integer"), at)
	m.read = func(r *reader, of any, path string, given any) { *at(pointer[T](of)) = r.whole(path, given) }
	return m
}

// usd describes an amount of USD.
func usd[T any](name, doc string, at func(*T) *Money) *member {
	m := field(name, doc, kind("number"), at)
	m.read = func(r *reader, of any, path string, given any) { *at(pointer[T](of)) = r.money(path, given) }
	return m
}

// limit describes an amount of USD that may be null.
func limit[T any](name, doc string, at func(*T) **Money) *member {
	return &member{
		name: name, doc: doc, schema: kind("number", "null"),
		value: func(of any) any { return orNull(*at(pointer[T](of))) },
		read: func(r *reader, of any, path string, given any) {
			if given != nil {
				m := r.money(path, given)
				*at(pointer[T](of)) = &m
			}
		},
	}
}

// orNull is a value, or null for none.
func orNull[V any](v *V) any {
	if v == nil {
		return nil
	}
	return *v
}

// anything describes a member of any type.
func anything[T any](name, doc string, at func(*T) *any) *member {
	m := field(name, doc, nil, at)
	m.read = func(_ *reader, of any, _ string, given any) { *at(pointer[T](of)) = given }
	return m
}

// price describes a price that may be unknown.
func price[T any](name, doc string, at func(*T) catalog.Price) *member {
	return derived(name, doc, kind("number", "null"), func(of *T) any {
		p := at(of)
		if !p.Known {
			return nil
		}
		return p.PerHour
	})
}

// moment describes a time that may be null, in RFC 3339.
func moment[T any](name, doc string, at func(*T) *time.Time) *member {
	return &member{
		name: name, doc: doc, schema: kind("string", "null"),
		value: func(of any) any {
			t := *at(pointer[T](of))
			if t.IsZero() {
				return nil
			}
			return t.UTC().Format(time.RFC3339Nano)
		},
		read: func(r *reader, of any, path string, given any) {
			text := typed[string](r, path, given)
			if text == "" {
				return
			}
			t, err := time.Parse(time.RFC3339Nano, text)
			if err != nil {
				r.fault(path, "is not a time")
			}
			*at(pointer[T](of)) = t
		},
	}
}

// Schema returns the JSON Schema (2020-12) of the document, which policies are
// type-checked against.
func Schema() []byte {
	s := documentShape.schema(documentShape.doc)
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Policy input, version 1"
	s["$defs"] = object{"state": operation.States().Typed()}
	for _, m := range resources(s) {
		m["$ref"] = "#/$defs/state"
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic("record: " + err.Error()) // strings, lists and maps of them always marshal
	}
	return append(text, '\n')
}

// Described returns the schema of the document as it is decoded, with those of bodies
// and of resources.
func Described(body, resource map[string]any) map[string]any {
	s := documentShape.schema("")
	maps.Copy(below(s, "request", "body"), body)
	for _, m := range resources(s) {
		maps.Copy(m, resource)
	}
	return s
}

// below is the schema of a member's member, and so on.
func below(s object, path ...string) object {
	for _, name := range path {
		s = s["properties"].(object)[name].(object) //nolint:forcetypeassert // as documentShape has them
	}
	return s
}

// resources are the schemas, in that of the document, of members that are resources.
func resources(s object) []object {
	return []object{below(s, "resource", "current"), below(s, "resource", "after"), below(s, "resource", "template", "record")}
}

func (s *shape) schema(doc string) object {
	properties := object{}
	for _, m := range s.members {
		var out object
		switch {
		case m.inner == nil:
			out = object{}
		case m.schema == nil:
			out = m.inner.schema(m.doc)
		default: // values of one kind, by name
			out = object{"additionalProperties": m.inner.schema(m.inner.doc)}
		}
		maps.Copy(out, m.schema)
		if m.doc != "" {
			out["description"] = m.doc
		}
		properties[m.name] = out
	}
	return object{"type": "object", "description": doc, "properties": properties, "additionalProperties": false}
}

// Member is a member of the document, for its reference.
type Member struct {
	// Path is dotted; <name> stands for any name.
	Path string
	// Type is its JSON type, "any" where it may be of several.
	Type string
	Doc  string
}

// Members lists the members of the document, each object before its members.
func Members() []Member { return documentShape.list("") }

// StateMembers lists the known members of resources, of all kinds together, by paths in
// them; [] stands for any item of a list.
func StateMembers() []Member {
	var out []Member
	for path, s := range operation.States().All() {
		out = append(out, Member{Path: path, Type: strings.Join(s.Types, " or ")})
	}
	return out
}

func (s *shape) list(at string) []Member {
	var out []Member
	for _, m := range s.members {
		path := at + m.name
		out = append(out, Member{Path: path, Type: m.kind(), Doc: m.doc})
		switch {
		case m.inner != nil && m.schema == nil:
			out = append(out, m.inner.list(path+".")...)
		case m.inner != nil:
			out = append(out, m.inner.list(path+".<name>.")...)
		}
	}
	return out
}

// kind is the JSON type of a member.
func (m *member) kind() string {
	switch t := m.schema["type"].(type) {
	case string:
		return t
	case []any:
		return fmt.Sprintf("%v or %v", t[0], t[1])
	}
	if m.inner != nil {
		return "object"
	}
	return "any"
}
