package graphql

import (
	"context"
	"maps"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// described is a type as introspection shows it: a named one, or a list or
// non-null wrapper around another.
type described struct {
	schema *ast.Schema
	kind   string
	def    *ast.Definition // nil for a wrapper
	of     *ast.Type       // what a wrapper wraps
}

// member is a field, an argument or a field of an input object.
type member struct {
	schema     *ast.Schema
	name, text string
	typ        *ast.Type
	args       ast.ArgumentDefinitionList
	initial    *ast.Value
}

func describe(schema *ast.Schema, t *ast.Type) any {
	switch {
	case t.NonNull:
		inner := *t
		inner.NonNull = false
		return described{schema: schema, kind: "NON_NULL", of: &inner}
	case t.Elem != nil:
		return described{schema: schema, kind: "LIST", of: t.Elem}
	}
	return describeNamed(schema, schema.Types[t.NamedType])
}

func describeNamed(schema *ast.Schema, def *ast.Definition) any {
	if def == nil {
		return nil
	}
	return described{schema: schema, kind: string(def.Kind), def: def}
}

// orNull is nil for an empty text.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// executable lists the directives a document may use.
func executable(schema *ast.Schema) []any {
	return []any{schema.Directives["include"], schema.Directives["skip"]}
}

// introspectionRoots are the two introspection fields of the query type.
func introspectionRoots(schema *ast.Schema) objectType {
	return objectType{
		"__schema": always(schema),
		"__type": root(func(_ context.Context, _ *exchange, in input) (any, error) {
			return describeNamed(schema, schema.Types[in.text("name")]), nil
		}),
	}
}

// introspectionTypes resolves the meta-schema (specification section 4.2).
func introspectionTypes() map[string]objectType {
	return map[string]objectType{
		"__Schema": {
			"description": get(func(s *ast.Schema) any { return orNull(s.Description) }),
			"types": get(func(s *ast.Schema) any {
				types := make([]any, 0, len(s.Types))
				for _, name := range slices.Sorted(maps.Keys(s.Types)) {
					types = append(types, describeNamed(s, s.Types[name]))
				}
				return types
			}),
			"queryType":        get(func(s *ast.Schema) any { return describeNamed(s, s.Query) }),
			"mutationType":     get(func(s *ast.Schema) any { return describeNamed(s, s.Mutation) }),
			"subscriptionType": always(nil),
			"directives":       get(func(s *ast.Schema) any { return executable(s) }),
		},
		"__Type": typeFields(),
		"__Field": {
			"name":              get(func(m member) any { return m.name }),
			"description":       get(func(m member) any { return orNull(m.text) }),
			"args":              get(func(m member) any { return arguments(m.schema, m.args) }),
			"type":              get(func(m member) any { return describe(m.schema, m.typ) }),
			"isDeprecated":      always(false),
			"deprecationReason": always(nil),
		},
		"__InputValue": {
			"name":        get(func(m member) any { return m.name }),
			"description": get(func(m member) any { return orNull(m.text) }),
			"type":        get(func(m member) any { return describe(m.schema, m.typ) }),
			"defaultValue": get(func(m member) any {
				if m.initial == nil {
					return nil
				}
				return m.initial.String()
			}),
			"isDeprecated":      always(false),
			"deprecationReason": always(nil),
		},
		"__EnumValue": {
			"name":              get(func(v *ast.EnumValueDefinition) any { return v.Name }),
			"description":       get(func(v *ast.EnumValueDefinition) any { return orNull(v.Description) }),
			"isDeprecated":      always(false),
			"deprecationReason": always(nil),
		},
		"__Directive": {
			"name":         get(func(d *ast.DirectiveDefinition) any { return d.Name }),
			"description":  get(func(d *ast.DirectiveDefinition) any { return orNull(d.Description) }),
			"isRepeatable": get(func(d *ast.DirectiveDefinition) any { return d.IsRepeatable }),
			"locations": get(func(d *ast.DirectiveDefinition) any {
				places := make([]any, len(d.Locations))
				for i, l := range d.Locations {
					places[i] = string(l)
				}
				return places
			}),
			"args": field(func(_ context.Context, x *exchange, d *ast.DirectiveDefinition, _ input) (any, error) {
				return arguments(x.api.schema, d.Arguments), nil
			}),
		},
	}
}

func typeFields() objectType {
	return objectType{
		"kind": get(func(d described) any { return d.kind }),
		"name": get(func(d described) any {
			if d.def == nil {
				return nil
			}
			return d.def.Name
		}),
		"description": get(func(d described) any {
			if d.def == nil {
				return nil
			}
			return orNull(d.def.Description)
		}),
		"specifiedByURL": always(nil),
		"fields": get(func(d described) any {
			if d.def == nil || d.def.Kind != ast.Object {
				return nil
			}
			return members(d.schema, d.def.Fields)
		}),
		"interfaces": get(func(d described) any {
			if d.def == nil || d.def.Kind != ast.Object {
				return nil
			}
			return []any{}
		}),
		"possibleTypes": always(nil),
		"enumValues": get(func(d described) any {
			if d.def == nil || d.def.Kind != ast.Enum {
				return nil
			}
			values := make([]any, len(d.def.EnumValues))
			for i, v := range d.def.EnumValues {
				values[i] = v
			}
			return values
		}),
		"inputFields": get(func(d described) any {
			if d.def == nil || d.def.Kind != ast.InputObject {
				return nil
			}
			return members(d.schema, d.def.Fields)
		}),
		"ofType": get(func(d described) any {
			if d.of == nil {
				return nil
			}
			return describe(d.schema, d.of)
		}),
		"isOneOf": get(func(d described) any {
			if d.def == nil || d.def.Kind != ast.InputObject {
				return nil
			}
			return false
		}),
	}
}

// members shows fields; those of introspection itself are not listed
// (specification section 4.1).
func members(schema *ast.Schema, fields ast.FieldList) []any {
	out := make([]any, 0, len(fields))
	for _, f := range fields {
		if f.Name == "__schema" || f.Name == "__type" {
			continue
		}
		out = append(out, member{schema: schema, name: f.Name, text: f.Description, typ: f.Type, args: f.Arguments, initial: f.DefaultValue})
	}
	return out
}

func arguments(schema *ast.Schema, list ast.ArgumentDefinitionList) []any {
	out := make([]any, len(list))
	for i, a := range list {
		out[i] = member{schema: schema, name: a.Name, text: a.Description, typ: a.Type, initial: a.DefaultValue}
	}
	return out
}
