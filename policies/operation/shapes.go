package operation

import (
	_ "embed" // for shapes.json
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Shape describes which members a JSON value may have. The zero Shape describes a value that has no parts, or a value whose shape is
// unknown.
type Shape struct {
	// Members are the possible members of an object, by name. It is nil if the names are not restricted.
	Members map[string]*Shape `json:"members,omitempty"`
	// Values is the shape of the members of an object with arbitrary names.
	Values *Shape `json:"values,omitempty"`
	// Items is the shape of the items of a list.
	Items *Shape `json:"items,omitempty"`
	// Types lists the possible JSON types in order. It is empty if any type is possible.
	Types []string `json:"types,omitempty"`
}

//go:embed shapes.json
var shapesFile []byte

// shapes are the shapes in the description of the platform's API. A test of gateway/schema writes the file.
var shapes = sync.OnceValue(func() (out struct {
	Bodies map[string]*Shape `json:"bodies"`
	States *Shape            `json:"states"`
},
) {
	if err := json.Unmarshal(shapesFile, &out); err != nil {
		panic("operation: shapes.json: " + err.Error())
	}
	return out
})

// BodyShape returns the shape of an operation's body, or nil if the operation has no body or the shape is unknown.
func BodyShape(id string) *Shape { return shapes().Bodies[id] }

// AllBodies returns the merged shape of the bodies of all operations.
func AllBodies() *Shape { return shapes().Bodies[""] }

// States returns one shape that covers resources of all kinds, both in the platform's responses and in requests.
func States() *Shape { return shapes().States }

// All iterates over the parts of the shape in order of their paths, which are dotted and use [] for any item of a list.
func (s *Shape) All() iter.Seq2[string, *Shape] {
	return func(yield func(string, *Shape) bool) { s.each("", yield) }
}

func (s *Shape) each(at string, yield func(string, *Shape) bool) bool {
	for _, name := range slices.Sorted(maps.Keys(s.Members)) {
		m, path := s.Members[name], strings.TrimPrefix(at+"."+name, ".")
		if !yield(path, m) || !m.each(path, yield) {
			return false
		}
	}
	return s.Items == nil || yield(at+"[]", s.Items) && s.Items.each(at+"[]", yield)
}

// Has reports whether a value of the shape can have a member at path.
func (s *Shape) Has(path []string) bool {
	if len(path) == 0 {
		return true
	}
	next := s.next(path[0])
	return next != nil && next.Has(path[1:])
}

// next returns the shape of the member with a name, or nil if a value cannot have one.
func (s *Shape) next(name string) *Shape {
	if next := s.Members[name]; next != nil {
		return next
	}
	if _, err := strconv.Atoi(name); err == nil && s.Items != nil {
		return s.Items
	}
	return s.Values
}

// HasSome is like Has, for a path in which * matches any name.
func (s *Shape) HasSome(path []string) bool {
	if len(path) == 0 || path[0] != "*" {
		return len(path) == 0 || s.next(path[0]) != nil && s.next(path[0]).HasSome(path[1:])
	}
	for _, next := range slices.AppendSeq([]*Shape{s.Items, s.Values}, maps.Values(s.Members)) {
		if next != nil && next.HasSome(path[1:]) {
			return true
		}
	}
	return false
}

// Typed returns a JSON Schema for the known members of the value, which may be null. Unknown members are allowed, because the platform may
// add members.
func (s *Shape) Typed() map[string]any {
	known := s.Types
	if s.Members != nil && len(known) == 0 {
		known = []string{"object"}
	}
	if len(known) == 0 {
		return map[string]any{}
	}
	types := make([]any, 0, len(known)+1)
	for _, name := range known {
		one := map[string]any{"type": name}
		switch {
		case name == "object" && s.Members != nil && s.Values == nil:
			properties := make(map[string]any, len(s.Members))
			for name, m := range s.Members {
				properties[name] = m.Typed()
			}
			one["properties"] = properties
		case name == "array" && s.Items != nil:
			one["items"] = s.Items.Typed()
		}
		types = append(types, one)
	}
	if !slices.Contains(known, "null") {
		types = append(types, map[string]any{"type": "null"})
	}
	return map[string]any{"anyOf": types}
}

// Schema returns a JSON Schema with the members of the value and their types. It uses only keywords that OPA's type checker supports. The
// type null is left out.
func (s *Shape) Schema() map[string]any {
	switch {
	case s.Members != nil && s.Values == nil && s.Items == nil:
		properties := make(map[string]any, len(s.Members))
		for name, m := range s.Members {
			properties[name] = m.Schema()
		}
		return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	case s.Items != nil && s.Members == nil && s.Values == nil:
		return map[string]any{"type": "array", "items": s.Items.Schema()}
	case s.Items == nil && s.Values == nil && len(s.Types) == 1:
		return map[string]any{"type": s.Types[0]}
	default:
		return map[string]any{}
	}
}
