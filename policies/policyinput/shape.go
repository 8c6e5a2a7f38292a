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

// object is a decoded JSON object.
type object = map[string]any

// shape describes an object in the document: its members, sorted by name.
type shape struct {
	doc     string
	members []*member
	names   []string
	byName  map[string]*member
}

// member describes one member of an object.
type member struct {
	name, doc string
	// key is the name as an OPA term.
	key *ast.Term
	// schema is the JSON Schema of the value without its description.
	schema object
	// inner describes the members of the value, or of the values in it; it is nil for values without members.
	inner *shape
	// whole is set if inner describes the value itself, a pointer.
	whole bool
	// value returns the member of a Go value, which is a pointer to the type described by the shape.
	value func(of any) any
	// read sets the member of such a value. It is nil if the member is derived from others.
	read func(r *reader, of any, at string, given any)
}

// part is an object in the document: a Go value and its shape.
type part struct {
	*shape
	of any
}

// absentValue is the type of absent, which represents a missing member.
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

// field describes a member that is stored in the Go value. The type of the value determines the schema.
func field[T, V any](name, doc string, at func(*T) *V) *member {
	return &member{
		name: name, doc: doc, schema: schemaOf(new(V)),
		value: func(of any) any {
			v := at(pointer[T](of))
			switch v := any(v).(type) {
			case **Money:
				if *v == nil {
					return nil
				}
				return **v
			case *time.Time:
				if v.IsZero() {
					return nil
				}
				return v.UTC().Format(time.RFC3339Nano)
			}
			return *v
		},
		read: func(r *reader, of any, path string, given any) { r.field(at(pointer[T](of)), path, given) },
	}
}

// schemaOf returns the schema of a value, given by a pointer to it.
func schemaOf(value any) object {
	switch value.(type) {
	case *string:
		return kind("string")
	case *bool:
		return kind("boolean")
	case *int64:
		return kind("integer")
	case *Money:
		return kind("number")
	case **Money:
		return nullable("number")
	case *time.Time:
		return nullable("string")
	case *[]string:
		return listOf(kind("string"))
	case *map[string]string:
		return mapOf(kind("string"))
	case *map[string]any:
		return mapOf(true)
	}
	return nil // anything
}

// derived describes a member that is computed from others.
func derived[T any](name, doc string, schema object, value func(*T) any) *member {
	return &member{name: name, doc: doc, schema: schema, value: func(of any) any { return value(pointer[T](of)) }}
}

// within describes a member that is an object with its own shape.
func within[T, U any](name, doc string, inner *shape, at func(*T) *U) *member {
	return &member{
		name: name, doc: doc, inner: inner, whole: true,
		value: func(of any) any { return at(pointer[T](of)) },
		read: func(r *reader, of any, path string, given any) {
			r.members(inner, at(pointer[T](of)), path, typed[object](r, path, given))
		},
	}
}

// optional describes a member that is an object with its own shape and is absent if it is nil.
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

// pointer converts of to the type for which the members of a shape are described.
func pointer[T any](of any) *T { return of.(*T) }

// kind returns the schema of a JSON type.
func kind(name string) object { return object{"type": name} }

// nullable returns the schema of a JSON type or null.
func nullable(name string) object { return object{"type": []any{name, "null"}} }

// mapOf returns the schema of an object whose values have the same schema.
func mapOf(values any) object { return object{"type": "object", "additionalProperties": values} }

// listOf returns the schema of a list.
func listOf(items object) object { return object{"type": "array", "items": items} }

// price describes a price that may be unknown.
func price[T any](name, doc string, at func(*T) catalog.Price) *member {
	return derived(name, doc, nullable("number"), func(of *T) any {
		p := at(of)
		if !p.Known {
			return nil
		}
		return p.PerHour
	})
}

// Schema returns the JSON Schema (2020-12) of the document as formatted JSON.
func Schema() []byte {
	text, _ := json.MarshalIndent(DecodedSchema(), "", "  ") // strings, lists and maps always marshal
	return append(text, '\n')
}

// DecodedSchema returns the JSON Schema of the document as decoded JSON. Policies are type-checked against it.
func DecodedSchema() map[string]any {
	s := documentShape.schema(documentShape.doc)
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Policy input, version 1"
	s["$defs"] = object{"state": operation.States().Typed()}
	for _, m := range resources(s) {
		m["$ref"] = "#/$defs/state"
	}
	return s
}

// Described returns the JSON schema of the policy input. body and resource are the schemas of request bodies and of resources; Described
// inserts them where the input contains a body or a resource.
func Described(body, resource map[string]any) map[string]any {
	s := documentShape.schema("")
	maps.Copy(below(s, "request", "body"), body)
	for _, m := range resources(s) {
		maps.Copy(m, resource)
	}
	return s
}

// below returns the schema at a path of members.
func below(s object, path ...string) object {
	for _, name := range path {
		s = s["properties"].(object)[name].(object) //nolint:forcetypeassert // as documentShape has them
	}
	return s
}

// resources returns the schemas of the members of the document that contain resources.
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
		default: // values of the same schema, by name
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

// Member describes a member of the document for the reference documentation.
type Member struct {
	// Path is the dotted path; <name> matches any name.
	Path string
	// Type is the JSON type, or "any" if several are possible.
	Type string
	Doc  string
}

// Members returns the members of the document, each object before its members.
func Members() []Member { return documentShape.list("") }

// StateMembers returns the known members of resources of all kinds, with paths relative to the resource; [] stands for any item of
// a list.
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

// kind returns the JSON type of a member.
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
