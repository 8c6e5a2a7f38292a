package fastcheck

import (
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// endless returns the schemas in and below root that may judge a value by
// themselves again, each with its location. jsonschema/v5 refuses a value as
// soon as it finds itself in a loop, even in a branch that does not matter and
// that a program would not look into. So one such schema spoils a program as a
// whole. It finds some loops when it compiles, but not all.
func endless(root *jsonschema.Schema) []string {
	var found []string
	seen := make(map[*jsonschema.Schema]bool)
	var visit func(s *jsonschema.Schema)
	visit = func(s *jsonschema.Schema) {
		if seen[s] {
			return
		}
		seen[s] = true
		switch {
		case s.DynamicRef != nil || s.RecursiveRef != nil:
			found = append(found, s.Location+": a dynamic reference")
		case refersToItself(s):
			found = append(found, s.Location+": a schema that applies itself to the same value")
		}
		for _, sub := range slices.Concat(inPlace(s), parts(s)) {
			visit(sub)
		}
	}
	visit(root)
	slices.Sort(found)
	return found
}

func refersToItself(s *jsonschema.Schema) bool {
	seen := make(map[*jsonschema.Schema]bool)
	var reaches func(from *jsonschema.Schema) bool
	reaches = func(from *jsonschema.Schema) bool {
		for _, next := range inPlace(from) {
			if next == s {
				return true
			}
			if !seen[next] {
				seen[next] = true
				if reaches(next) {
					return true
				}
			}
		}
		return false
	}
	return reaches(s)
}

// inPlace returns the schemas that s applies to the value it is applied to.
func inPlace(s *jsonschema.Schema) []*jsonschema.Schema {
	return slices.Concat(always(s), sometimes(s), present(s.Not))
}

// parts returns the schemas that s applies to parts of the value.
func parts(s *jsonschema.Schema) []*jsonschema.Schema {
	out := slices.Concat(s.PrefixItems,
		present(s.PropertyNames, s.UnevaluatedProperties, s.Items2020, s.Contains, s.UnevaluatedItems, s.ContentSchema),
		slices.Collect(maps.Values(s.Properties)), slices.Collect(maps.Values(s.PatternProperties)))
	for _, v := range []any{s.AdditionalProperties, s.AdditionalItems, s.Items} {
		switch v := v.(type) {
		case *jsonschema.Schema:
			out = append(out, v)
		case []*jsonschema.Schema:
			out = append(out, v...)
		}
	}
	return out
}

// always returns the schemas without whose consent s does not accept a value.
func always(s *jsonschema.Schema) []*jsonschema.Schema {
	return slices.Concat(present(s.Ref), s.AllOf)
}

// sometimes returns the schemas whose consent depends on the value.
func sometimes(s *jsonschema.Schema) []*jsonschema.Schema {
	out := slices.Concat(s.AnyOf, s.OneOf, present(s.If, s.Then, s.Else))
	for _, sub := range s.DependentSchemas {
		out = append(out, sub)
	}
	for _, dependency := range s.Dependencies {
		if sub, ok := dependency.(*jsonschema.Schema); ok {
			out = append(out, sub)
		}
	}
	return out
}

// present returns those of schemas that are there.
func present(schemas ...*jsonschema.Schema) []*jsonschema.Schema {
	return slices.DeleteFunc(schemas, func(s *jsonschema.Schema) bool { return s == nil })
}
