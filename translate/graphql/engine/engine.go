package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/core"
)

// Resolver yields the value of one field of source: nil, a leaf (string, bool,
// integer, json.Number, float64, or one made by Input), []any, or for an object any value that the
// resolvers of its type expect. It runs only when the field is selected. x is what
// [Operation.Execute] was given.
type Resolver[X any] func(ctx context.Context, x X, source any, in Input) (any, error)

// Object holds the resolvers of one type of the schema, by field.
type Object[X any] map[string]Resolver[X]

// Config holds the parts of an Engine.
type Config[X any] struct {
	// Schema is the schema in its definition language.
	Schema string
	// Types holds the resolvers, by type. Every field has one, except those with the
	// directive @unavailable on them or on their type.
	Types map[string]Object[X]
	// Limits bounds one request.
	Limits Limits
	// Introspection answers __schema and __type.
	Introspection bool
	// Removed returns why a root field is not available any more, and nil for
	// every other field. A document of such fields only is executed to these
	// errors without being validated against the schema, which need not have
	// them.
	Removed func(f RootField) error
	// Named returns the schema's name of a field or a member of an input object
	// that a document spells otherwise, and any other name as it is; nil knows no
	// other spellings.
	Named func(name string) string
}

// Limits bounds one request. Counts are taken after fragments
// are expanded.
type Limits struct {
	Document   int // bytes of the document
	Tokens     int // lexical tokens of the document, comments included
	Depth      int // levels of fields; introspection has a fixed bound of 16
	Fields     int // selected fields
	Aliases    int // fields given another name
	Directives int // directives of the document
	Values     int // values in arguments, literals and variables, coerced or compared
	Response   int // bytes of the answer
}

// Engine executes documents against one schema. It is safe for concurrent use.
type Engine[X any] struct {
	cfg    Config[X]
	schema *ast.Schema
	// words lists the values of each lenient enumeration.
	words map[string][]string
	// valid holds valid documents by their source; they are never changed.
	valid *lru.Cache[string, *ast.QueryDocument]
	// shapes are those of valid documents.
	shapes *lru.Cache[string, struct{}]
	rules  []core.Rule
}

// New returns an engine, or an error for a schema that does not parse, a field
// without resolver, or a resolver without field.
func New[X any](cfg Config[X]) (*Engine[X], error) {
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: "schema.graphql", Input: cfg.Schema})
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if err := complete(schema, cfg.Types); err != nil {
		return nil, err
	}
	if cfg.Named == nil {
		cfg.Named = func(name string) string { return name }
	}
	e := &Engine[X]{cfg: cfg, schema: schema, words: enumerations(schema), rules: validationRules()}
	e.cfg.Types = maps.Clone(cfg.Types)
	query := maps.Clone(cfg.Types[schema.Query.Name])
	maps.Copy(query, introspection[X](schema))
	e.cfg.Types[schema.Query.Name] = query
	if e.valid, err = lru.New[string, *ast.QueryDocument](cachedDocuments); err != nil {
		return nil, err
	}
	e.shapes, err = lru.New[string, struct{}](cachedDocuments)
	return e, err
}

// complete compares the schema with the resolvers, both ways. The meta-schema,
// whose names begin with "__", is answered by introspection.
func complete[X any](schema *ast.Schema, types map[string]Object[X]) error {
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(schema.Types)) {
		def := schema.Types[name]
		if def.Kind != ast.Object || strings.HasPrefix(name, "__") {
			continue
		}
		for _, f := range def.Fields {
			if types[name][f.Name] == nil && !strings.HasPrefix(f.Name, "__") && !unavailable(def, f) {
				faults = append(faults, fmt.Errorf("%s.%s has no resolver", name, f.Name))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		def := schema.Types[name]
		for _, f := range slices.Sorted(maps.Keys(types[name])) {
			if def == nil || def.Fields.ForName(f) == nil {
				faults = append(faults, fmt.Errorf("resolver %s.%s is not in the schema", name, f))
			}
		}
	}
	return errors.Join(faults...)
}

// unavailable reports whether a field is always null.
func unavailable(of *ast.Definition, f *ast.FieldDefinition) bool {
	const directive = "unavailable"
	return f.Directives.ForName(directive) != nil || of.Directives.ForName(directive) != nil
}

// enumerations reads the values of the lenient enumerations.
func enumerations(schema *ast.Schema) map[string][]string {
	words := map[string][]string{}
	for name, def := range schema.Types {
		if def.Kind == ast.Scalar && !def.BuiltIn && def.Description == strings.ToUpper(def.Description) && def.Description != "" {
			words[name] = strings.Fields(def.Description)
		}
	}
	return words
}

// HasRoot reports whether the schema has a root field of the name.
func (e *Engine[X]) HasRoot(name string) bool {
	return e.schema.Query.Fields.ForName(name) != nil || e.schema.Mutation.Fields.ForName(name) != nil
}
