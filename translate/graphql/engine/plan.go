package engine

import (
	"context"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// introspectionDepth is the depth limit of __schema and __type, which common tools nest deeper than data queries.
const introspectionDepth = 16

// node is one field of a planned operation: fragments are expanded, @skip and @include evaluated, fields with the same
// response key merged, and arguments coerced.
type node[X any] struct {
	// key is the name in the response, name the field's own name.
	key, name string
	// typ is the type of the value, of the definition of its innermost element type.
	typ *ast.Type
	of  *ast.Definition
	// resolve is nil for __typename and the meta-schema.
	resolve Resolver[X]
	args    map[string]any
	memo    memo
	// sets holds the selection sets of the merged fields, from which sub is planned.
	sets []ast.SelectionSet
	sub  []*node[X]
}

// selects implements selection.
func (n *node[X]) selects(path []string) bool {
	return len(path) == 0 || slices.ContainsFunc(n.sub, func(sub *node[X]) bool {
		return sub.name == path[0] && sub.selects(path[1:])
	})
}

// planner converts a valid operation to nodes.
type planner[X any] struct {
	engine *Engine[X]
	coerce coercer

	fields, aliases int
	// unavailable lists the selected fields that are always null.
	unavailable []string
}

// null resolves unavailable fields.
func null[X any](context.Context, X, any, Input) (any, error) { return nil, nil }

// root returns the type of the operation's root fields.
func (e *Engine[X]) root(def *ast.OperationDefinition) *ast.Definition {
	if def.Operation == ast.Mutation {
		return e.schema.Mutation
	}
	return e.schema.Query
}

func (e *Engine[X]) plan(doc *ast.QueryDocument, def *ast.OperationDefinition, variables map[string]any) (*Operation[X], []*Error) {
	if !e.cfg.Introspection {
		for _, f := range roots(doc, def.SelectionSet) {
			if f.Name == "__schema" || f.Name == "__type" {
				return nil, []*Error{invalid("GraphQL introspection is not allowed").at(f.at)}
			}
		}
	}
	for _, d := range def.Directives {
		return nil, []*Error{invalid(`Directive "@` + Clip(d.Name) + `" is not allowed here.`).at(d.Position)}
	}
	p := &planner[X]{engine: e, coerce: coercer{
		schema: e.schema, operation: def, variables: variables, words: e.words, named: e.cfg.Named, most: e.cfg.Limits.Values,
	}}
	op := &Operation[X]{Name: def.Name, engine: e, of: e.root(def)}
	var fault *Error
	op.roots, fault = p.selection(op.of, []ast.SelectionSet{def.SelectionSet}, 1, e.cfg.Limits.Depth)
	if fault != nil {
		return nil, append(p.coerce.unknown, fault)
	}
	slices.Sort(p.unavailable)
	op.Unavailable = slices.Compact(p.unavailable)
	return op, p.coerce.unknown
}

// selection expands the selection sets of one object of type of, in document order (specification, section 6.3.2,
// CollectFields). depth counts fields from the root; most is its limit.
func (p *planner[X]) selection(of *ast.Definition, sets []ast.SelectionSet, depth, most int) ([]*node[X], *Error) {
	if depth > most {
		return nil, LimitExceeded("depth", most, "levels of fields")
	}
	g := &gatherer[X]{p: p, of: of, seen: map[string]bool{}, byKey: map[string]*node[X]{}}
	for _, set := range sets {
		if fault := g.walk(set); fault != nil {
			return nil, fault
		}
	}
	for _, n := range g.nodes {
		if len(n.sets) == 0 {
			continue
		}
		below := most
		if n.name == "__schema" || n.name == "__type" {
			below = introspectionDepth
		}
		var fault *Error
		if n.sub, fault = p.selection(n.of, n.sets, depth+1, below); fault != nil {
			return nil, fault
		}
	}
	return g.nodes, nil
}

// gatherer collects the fields of one object.
type gatherer[X any] struct {
	p     *planner[X]
	of    *ast.Definition
	seen  map[string]bool
	byKey map[string]*node[X]
	nodes []*node[X] // in document order
}

func (g *gatherer[X]) walk(set ast.SelectionSet) *Error {
	for _, s := range set {
		var fault *Error
		switch s := s.(type) {
		case *ast.Field:
			fault = g.field(s).at(s.Position)
		case *ast.InlineFragment:
			fault = g.fragment(s.Directives, s.TypeCondition, s.SelectionSet).at(s.Position)
		case *ast.FragmentSpread:
			fault = g.spread(s).at(s.Position)
		}
		if fault != nil {
			return fault
		}
	}
	return nil
}

func (g *gatherer[X]) spread(s *ast.FragmentSpread) *Error {
	if g.seen[s.Name] {
		return nil
	}
	included, fault := g.p.included(s.Directives)
	if fault != nil || !included {
		return fault
	}
	g.seen[s.Name] = true
	return g.fragment(nil, s.Definition.TypeCondition, s.Definition.SelectionSet)
}

// fragment collects the fields of a fragment. The schema has neither interfaces nor unions, so a type condition must name
// the type itself.
func (g *gatherer[X]) fragment(d ast.DirectiveList, on string, set ast.SelectionSet) *Error {
	included, fault := g.p.included(d)
	if fault != nil || !included {
		return fault
	}
	if on != "" && on != g.of.Name {
		return invalid(`Fragment cannot be spread here as objects of type "` + g.of.Name + `" can never be of type "` + Clip(on) + `".`)
	}
	return g.walk(set)
}

func (g *gatherer[X]) field(s *ast.Field) *Error {
	included, fault := g.p.included(s.Directives)
	if fault != nil || !included {
		return fault
	}
	limits := &g.p.engine.cfg.Limits
	if g.p.fields++; g.p.fields > limits.Fields {
		return LimitExceeded("fields", limits.Fields, "fields")
	}
	given, fault := g.p.coerce.arguments(s, g.of)
	if fault != nil {
		return fault
	}
	n := g.byKey[s.Alias]
	if n == nil {
		if g.p.coerce.named(s.Alias) != s.Name {
			if g.p.aliases++; g.p.aliases > limits.Aliases {
				return LimitExceeded("aliases", limits.Aliases, "aliases")
			}
		}
		typ := s.Definition.Type
		n = &node[X]{
			key: s.Alias, name: s.Name, typ: typ, of: g.p.engine.schema.Types[typ.Name()], args: given,
			resolve: g.p.engine.cfg.Types[g.of.Name][s.Name],
		}
		if unavailable(g.of, s.Definition) {
			n.resolve = null[X]
			if s.Definition.Directives != nil {
				g.p.unavailable = append(g.p.unavailable, g.of.Name+"."+s.Name)
			}
		}
		g.byKey[s.Alias] = n
		g.nodes = append(g.nodes, n)
	} else if fault := g.p.merges(n, s, given); fault != nil {
		return fault
	}
	if len(s.SelectionSet) > 0 {
		n.sets = append(n.sets, s.SelectionSet)
	}
	return nil
}

// merges returns an error if a field differs from the earlier field with the same key in name or arguments.
func (p *planner[X]) merges(n *node[X], s *ast.Field, given map[string]any) *Error {
	same := n.name == s.Name
	if same {
		var fault *Error
		if same, fault = p.coerce.same(n.args, given); fault != nil {
			return fault
		}
	}
	if !same {
		return invalid(`Fields "` + n.key + `" conflict: their names or arguments differ. Use different aliases.`)
	}
	return nil
}

// included evaluates @skip and @include, the only supported directives.
func (p *planner[X]) included(list ast.DirectiveList) (bool, *Error) {
	keep := true
	for _, d := range list {
		if d.Name != "skip" && d.Name != "include" {
			return false, invalid(`Unknown directive "@` + Clip(d.Name) + `".`).at(d.Position)
		}
		if len(d.Arguments) > 1 { // other than "if"
			return false, invalid(`Unknown argument on directive "@` + d.Name + `".`).at(d.Position)
		}
		v, fault := p.coerce.value(d.Arguments.ForName("if").Value, ast.NonNullNamedType("Boolean", nil), "if")
		if fault != nil {
			return false, fault.at(d.Position)
		}
		on, ok := v.(bool)
		if !ok {
			return false, badInput("if: expected Boolean!, found null").at(d.Position)
		}
		if on == (d.Name == "skip") {
			keep = false
		}
	}
	return keep, nil
}

// Input holds the arguments and the selection of a field.
type Input struct {
	// Args holds the coerced arguments: string, int64, float64, bool, []any or map[string]any. It omits absent values, null and empty
	// enumeration values. The map may be shared and must not be modified.
	Args  map[string]any
	below selection
	memo  *memo
}

// selection is the selected part of a field's value.
type selection interface{ selects(path []string) bool }

// Selects reports whether the field at a path is selected. For example, the path "machine", "id" is selected in { machine { id } }.
func (in Input) Selects(path ...string) bool { return in.below.selects(path) }

// memo holds the result of a resolver that depends only on the arguments, and a buffer for the value of the field. All objects with the
// field share the memo.
type memo struct {
	done  bool
	value any
	err   error

	text  string
	whole int64
	float float64
	texts []string
}

// Text returns a string leaf without an allocation. The value is valid until the field is resolved for the next object.
func (in Input) Text(s string) any {
	in.memo.text = s
	return &in.memo.text
}

// Whole returns an integer leaf; see Text.
func (in Input) Whole(n int64) any {
	in.memo.whole = n
	return &in.memo.whole
}

// Float returns a number leaf; see Text.
func (in Input) Float(f float64) any {
	in.memo.float = f
	return &in.memo.float
}

// Texts returns a list of strings as a value; the list may use Buffer. See Text.
func (in Input) Texts(list []string) any {
	in.memo.texts = list
	return &in.memo.texts
}

// Buffer returns an empty list with reusable capacity for strings.
func (in Input) Buffer() []string { return in.memo.texts[:0] }

// Memoize returns the value and the error of work. It calls work only for the first object with the field that in describes, and returns
// the same result for all other objects with this field. Memoize must not be called concurrently for the same field; the engine resolves
// the fields of one root field in sequence.
func Memoize[T any](in Input, work func() (T, error)) (T, error) {
	if m := in.memo; !m.done {
		m.value, m.err = work()
		m.done = true
	}
	v, _ := in.memo.value.(T)
	return v, in.memo.err
}
