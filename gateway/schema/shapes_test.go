package schema_test

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	operations "github.com/tollgate-dev/tollgate/policies/operation"
)

//nolint:gochecknoglobals // a flag of the test binary
var update = flag.Bool("update", false, "rewrite policies/operation/shapes.json")

// The shapes of bodies and resources that policies get are those of the description.
func TestShapesAreCurrent(t *testing.T) {
	const file = "../../policies/operation/shapes.json"
	d := description{}
	if err := json.Unmarshal(load(t).Document(), &d); err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(d.shapes(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), string(want)); diff != "" {
		t.Errorf("shapes.json is stale, run go test ./gateway/schema -update (-want +got):\n%s", diff)
	}
}

// description is an OpenAPI document.
type description map[string]any

// at is the value at a path of names.
func at(v any, path ...string) any {
	for _, name := range path {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	return v
}

// shapes are the shapes of the bodies of all operations, by id and under "" of all
// together, and of all resources together.
func (d description) shapes() map[string]any {
	bodies := map[string]*operations.Shape{}
	var all, states *operations.Shape
	read := map[string]bool{}
	for _, row := range operations.All() {
		read[row.ReadOperation] = true
	}
	for _, item := range at(map[string]any(d), "paths").(map[string]any) { //nolint:forcetypeassert // a description has paths
		for _, op := range item.(map[string]any) { //nolint:forcetypeassert // as above
			id, _ := at(op, "operationId").(string)
			if body := at(op, "requestBody", "content", "application/json", "schema"); body != nil {
				bodies[id] = d.shape(body)
				all = either(all, bodies[id])
				if row, _ := operations.Lookup(id); row.Verb.HasResultState() || row.Verb == operations.VerbAction {
					states = either(states, d.shape(body))
				}
			}
			if response := at(op, "responses", "200", "content", "application/json", "schema"); read[id] {
				states = either(states, d.shape(response))
			}
		}
	}
	bodies[""] = all
	for _, body := range bodies {
		untype(body) // those of jobs are anything, under the same names
	}
	return map[string]any{"bodies": bodies, "states": states}
}

// shape is the shape of values of a schema, which may be of several.
func (d description) shape(schema any) *operations.Shape {
	s, _ := schema.(map[string]any)
	out := new(operations.Shape)
	if ref, ok := s["$ref"].(string); ok {
		out = d.shape(at(map[string]any(d), strings.Split(strings.TrimPrefix(ref, "#/"), "/")...))
	}
	for _, of := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := s[of].([]any)
		for _, part := range list {
			out = union(out, d.shape(part))
		}
	}
	one := new(operations.Shape)
	properties, _ := s["properties"].(map[string]any)
	for name, member := range properties {
		if one.Members == nil {
			one.Members = map[string]*operations.Shape{}
		}
		one.Members[name] = d.shape(member)
	}
	if s["type"] == "object" && properties == nil && len(s) <= 2 { // nothing but a description
		one.Values = new(operations.Shape)
	}
	if values, ok := s["additionalProperties"].(map[string]any); ok {
		one.Values = d.shape(values)
	}
	if items, ok := s["items"]; ok {
		one.Items = d.shape(items)
	}
	out = union(out, one)
	out.Types = d.types(s)
	return out
}

// untype forgets the types of a value and of its parts.
func untype(s *operations.Shape) {
	if s == nil {
		return
	}
	s.Types = nil
	untype(s.Values)
	untype(s.Items)
	for _, m := range s.Members {
		untype(m)
	}
}

// types are the JSON types of a schema's values, none for any.
func (d description) types(schema any) (out []string) {
	s, _ := schema.(map[string]any)
	if ref, ok := s["$ref"].(string); ok {
		return d.types(at(map[string]any(d), strings.Split(strings.TrimPrefix(ref, "#/"), "/")...))
	}
	switch given := s["type"].(type) {
	case string:
		return []string{given}
	case []any:
		for _, name := range given {
			out = append(out, name.(string)) //nolint:forcetypeassert // types have names
		}
		slices.Sort(out)
		return out
	}
	list, _ := s["allOf"].([]any)
	for _, part := range list { // each says all it knows
		if out = d.types(part); out != nil {
			return out
		}
	}
	for _, of := range []string{"anyOf", "oneOf"} {
		list, _ := s[of].([]any)
		for i, part := range list {
			if types := d.types(part); i == 0 {
				out = types
			} else {
				out = both(out, types)
			}
		}
	}
	return out
}

// both are the types of either, none where one of them may be any.
func both(a, b []string) []string {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}

// union is the shape of values of either shape.
func union(a, b *operations.Shape) *operations.Shape {
	out := &operations.Shape{Values: either(a.Values, b.Values), Items: either(a.Items, b.Items), Types: both(a.Types, b.Types)}
	for _, name := range slices.Sorted(maps.Keys(a.Members)) {
		if out.Members == nil {
			out.Members = map[string]*operations.Shape{}
		}
		out.Members[name] = either(a.Members[name], b.Members[name])
	}
	for name, member := range b.Members {
		if out.Members == nil {
			out.Members = map[string]*operations.Shape{}
		}
		if out.Members[name] == nil {
			out.Members[name] = member
		}
	}
	return out
}

func either(a, b *operations.Shape) *operations.Shape {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	default:
		return union(a, b)
	}
}
