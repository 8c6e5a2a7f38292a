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

// Resolver returns the value of one field of source. The value is nil, a leaf (string, bool, integer, json.Number, float64, or the result
// of a method of Input), []any, or, for an object, any value that the resolvers of its type expect. A Resolver is called only if the field
// is selected. x is the argument of [Operation.Execute].
type Resolver[X any] func(ctx context.Context, x X, source any, in Input) (any, error)

// Object maps the fields of one schema type to their resolvers.
type Object[X any] map[string]Resolver[X]

// Config holds the schema, resolvers and limits of an Engine.
type Config[X any] struct {
	// Schema is the schema in GraphQL's schema definition language.
	Schema string
	// Types holds the resolvers of each type. Every field needs a resolver, unless the field or its type has the directive @unavailable.
	Types map[string]Object[X]
	// Limits holds the limits of one request.
	Limits Limits
	// Introspection enables __schema and __type.
	Introspection bool
	// Removed returns an error if a root field is no longer available. If all root fields of a document have been removed, the document yields
	// these errors without validation against the schema, so that the schema need not contain the fields.
	Removed func(f RootField) error
	// Named returns the schema's name of a field or input member that has another spelling in a document. It returns all other names
	// unchanged.
	Named func(name string) string
}

// Limits holds the limits of one request. Fields are counted after the expansion of fragments.
type Limits struct {
	Document   int // bytes in the document
	Tokens     int // lexical tokens in the document, including comments
	Depth      int // levels of fields; introspection has a fixed limit of 16, which common tools need
	Fields     int // selected fields
	Aliases    int // aliased fields
	Directives int // directives in the document
	// Values limits argument values. It counts literals and the contents of variables, including members and items. A variable counts once for
	// each type of its positions. Comparisons of the arguments of fields with the same name count too.
	Values   int
	Response int // bytes in the response
}

// Engine executes documents of one schema. It is safe for concurrent use.
type Engine[X any] struct {
	cfg    Config[X]
	schema *ast.Schema
	// words lists the values of each lenient enumeration.
	words map[string][]string
	// valid caches valid documents by their source. The documents are never modified.
	valid *lru.Cache[string, *ast.QueryDocument]
	// shapes holds the shapes of valid documents.
	shapes *lru.Cache[string, struct{}]
	rules  []core.Rule
}

// New returns an engine. It returns an error if the schema does not parse, a field has no resolver, or a resolver has no
// field.
func New[X any](cfg Config[X]) (*Engine[X], error) {
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: "schema.graphql", Input: cfg.Schema})
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if err := complete(schema, cfg.Types); err != nil {
		return nil, err
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

// complete checks that fields and resolvers match in both directions. It skips the meta-schema, whose names begin with
// "__".
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
				faults = append(faults, fmt.Errorf("resolver %s.%s does not belong to a field of the schema", name, f))
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

// enumerations returns the values of the lenient enumerations.
func enumerations(schema *ast.Schema) map[string][]string {
	words := map[string][]string{}
	for name, def := range schema.Types {
		if def.Kind == ast.Scalar && !def.BuiltIn && def.Description == strings.ToUpper(def.Description) && def.Description != "" {
			words[name] = strings.Fields(def.Description)
		}
	}
	return words
}

// HasRoot reports whether the schema has a root field of the given name.
func (e *Engine[X]) HasRoot(name string) bool {
	return e.schema.Query.Fields.ForName(name) != nil || e.schema.Mutation.Fields.ForName(name) != nil
}
