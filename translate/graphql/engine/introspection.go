package engine

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// meta is an object of the meta-schema (specification, section 4.2), by field. Values that could recurse endlessly are of
// type func() any. A missing field is null.
type meta map[string]any

func metaMember(source any, name string) any {
	m, _ := source.(meta)
	if lazy, ok := m[name].(func() any); ok {
		return lazy()
	}
	return m[name]
}

// introspection returns the resolvers of __schema and __type.
func introspection[X any](schema *ast.Schema) Object[X] {
	return Object[X]{
		"__schema": func(context.Context, X, any, Input) (any, error) { return metaSchema(schema), nil },
		"__type": func(_ context.Context, _ X, _ any, in Input) (any, error) {
			name, _ := in.Args["name"].(string)
			return metaNamed(schema, name), nil
		},
	}
}

func metaSchema(s *ast.Schema) meta {
	directives := []any{}
	for _, name := range []string{"include", "skip"} { // the directives that a document may use
		d := s.Directives[name]
		directives = append(directives, meta{
			"name": d.Name, "description": orNull(d.Description), "isRepeatable": d.IsRepeatable,
			"locations": list(d.Locations, func(l ast.DirectiveLocation) any { return string(l) }),
			"args":      metaArguments(s, d.Arguments),
		})
	}
	return meta{
		"description":  orNull(s.Description),
		"types":        list(slices.Sorted(maps.Keys(s.Types)), func(name string) any { return metaNamed(s, name) }),
		"queryType":    metaNamed(s, s.Query.Name),
		"mutationType": metaNamed(s, s.Mutation.Name),
		"directives":   directives,
	}
}

func metaType(s *ast.Schema, t *ast.Type) any {
	switch {
	case t.NonNull:
		inner := *t
		inner.NonNull = false
		return meta{"kind": "NON_NULL", "ofType": func() any { return metaType(s, &inner) }}
	case t.Elem != nil:
		return meta{"kind": "LIST", "ofType": func() any { return metaType(s, t.Elem) }}
	}
	return metaNamed(s, t.NamedType)
}

func metaNamed(s *ast.Schema, name string) any {
	def := s.Types[name]
	if def == nil {
		return nil
	}
	m := meta{"kind": string(def.Kind), "name": def.Name, "description": orNull(def.Description)}
	switch def.Kind {
	case ast.Object:
		m["fields"] = func() any { return metaFields(s, def) }
		m["interfaces"] = []any{}
	case ast.InputObject:
		m["inputFields"] = func() any { return metaFields(s, def) }
		m["isOneOf"] = false
	case ast.Enum:
		m["enumValues"] = list(def.EnumValues, func(v *ast.EnumValueDefinition) any {
			return meta{"name": v.Name, "description": orNull(v.Description), "isDeprecated": false}
		})
	case ast.Scalar, ast.Interface, ast.Union: // scalars have no further fields; the schema has no interfaces or unions
	}
	return m
}

// metaFields lists the fields of an object or input, without the introspection fields (specification, section 4.1).
func metaFields(s *ast.Schema, def *ast.Definition) any {
	fields := slices.DeleteFunc(slices.Clone(def.Fields), func(f *ast.FieldDefinition) bool {
		return def == s.Query && strings.HasPrefix(f.Name, "__")
	})
	return list(fields, func(f *ast.FieldDefinition) any {
		m := metaValue(s, f.Name, f.Description, f.Type, f.DefaultValue)
		m["args"] = metaArguments(s, f.Arguments)
		return m
	})
}

func metaArguments(s *ast.Schema, args ast.ArgumentDefinitionList) []any {
	return list(args, func(a *ast.ArgumentDefinition) any {
		return metaValue(s, a.Name, a.Description, a.Type, a.DefaultValue)
	})
}

func metaValue(s *ast.Schema, name, description string, t *ast.Type, initial *ast.Value) meta {
	m := meta{
		"name": name, "description": orNull(description), "isDeprecated": false,
		"type": func() any { return metaType(s, t) },
	}
	if initial != nil {
		m["defaultValue"] = initial.String()
	}
	return m
}

// list converts the elements of a list. It never returns nil.
func list[T any](items []T, convert func(T) any) []any {
	out := make([]any, len(items))
	for i, item := range items {
		out[i] = convert(item)
	}
	return out
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
