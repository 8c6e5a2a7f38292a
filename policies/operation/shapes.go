package operation

import (
	_ "embed" // shapes.json
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"sync"
)

// Shape is what is known of a JSON value: which members it may have. The zero Shape
// is that of a value of which nothing is known, or that has no parts.
type Shape struct {
	// Members are those of an object, by name, if it has no others.
	Members map[string]*Shape `json:"members,omitempty"`
	// Values is the shape of the members of an object that may have any names.
	Values *Shape `json:"values,omitempty"`
	// Items is the shape of the items of a list.
	Items *Shape `json:"items,omitempty"`
}

//go:embed shapes.json
var shapesFile []byte

// shapes are what the description of the platform's API says; see the test of
// gateway/schema that writes the file.
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

// BodyShape returns the shape of an operation's body; nil where it has none that is
// known.
func BodyShape(id string) *Shape { return shapes().Bodies[id] }

// AnyBody returns the shape of the bodies of all operations together.
func AnyBody() *Shape { return shapes().Bodies[""] }

// States returns the shape of resources, of all kinds together: as they are read, and
// as they are asked for.
func States() *Shape { return shapes().States }

// Has reports whether a value of the shape may have something at a path.
func (s *Shape) Has(path []string) bool {
	if len(path) == 0 {
		return true
	}
	next := s.next(path[0])
	return next != nil && next.Has(path[1:])
}

// next returns the shape of what a value of the shape may have under a name, nil if it
// may have nothing there.
func (s *Shape) next(name string) *Shape {
	if next := s.Members[name]; next != nil {
		return next
	}
	if _, err := strconv.Atoi(name); err == nil && s.Items != nil {
		return s.Items
	}
	return s.Values
}

// HasSome reports the same of paths in which * stands for any name.
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

// Schema returns a JSON Schema of the members.
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
	default:
		return map[string]any{}
	}
}
