package graphql

import (
	"github.com/vektah/gqlparser/v2/ast"
)

// introspectionDepth bounds __schema and __type, which the usual tools nest
// deeper than any query for data.
const introspectionDepth = 16

// node is one field of the operation to execute: fragments expanded, @skip and
// @include decided, fields of one response key merged, arguments coerced.
type node struct {
	// key is the name in the answer, name the field's own.
	key, name string
	// typ is the type of the field's value, of the definition that typ names
	// below any lists.
	typ *ast.Type
	of  *ast.Definition
	// resolve is nil for __typename and introspection.
	resolve resolver
	args    args
	kept    kept
	sub     []*node
	line    int
	col     int
}

// planner turns an operation into nodes. Everything that can be wrong with a
// request is found here, so that a bad one causes no v2 call at all.
type planner struct {
	schema *ast.Schema
	types  map[string]objectType
	doc    *ast.QueryDocument
	coerce coercer
	limits Limits

	fields, aliases int
}

// merged gathers what is selected under one response key.
type merged struct {
	node *node
	def  *ast.FieldDefinition
	sets []ast.SelectionSet
}

// selection expands the selection sets that apply to one object of type of, in
// the order of the document (specification section 6.3.2, CollectFields). depth
// counts fields from the root, most is the bound on it.
func (p *planner) selection(of *ast.Definition, sets []ast.SelectionSet, depth, most int) ([]*node, *fault) {
	if depth > most {
		return nil, limitFault("depth", most, "levels of fields")
	}
	g := &gatherer{p: p, of: of, seen: map[string]bool{}, byKey: map[string]*merged{}}
	for _, set := range sets {
		if f := g.walk(set); f != nil {
			return nil, f
		}
	}
	nodes := make([]*node, 0, len(g.order))
	for _, m := range g.order {
		nodes = append(nodes, m.node)
		below := most
		if m.node.name == "__schema" || m.node.name == "__type" {
			below = introspectionDepth
		}
		switch composite := m.node.of != nil && m.node.of.IsCompositeType(); {
		case composite && len(m.sets) == 0:
			return nil, nodeFault(m.node, `Field "`+m.node.name+`" of type "`+m.node.typ.String()+`" must have a selection of subfields.`)
		case composite:
			sub, f := p.selection(m.node.of, m.sets, depth+1, below)
			if f != nil {
				return nil, f
			}
			m.node.sub = sub
		case len(m.sets) > 0:
			return nil, nodeFault(m.node, `Field "`+m.node.name+`" must not have a selection: it is of type "`+m.node.typ.String()+`".`)
		}
	}
	return nodes, nil
}

func nodeFault(n *node, message string) *fault {
	f := badValidation(message)
	f.line, f.col = n.line, n.col
	return f
}

// gatherer collects the fields of one object.
type gatherer struct {
	p     *planner
	of    *ast.Definition
	seen  map[string]bool
	byKey map[string]*merged
	order []*merged
}

func (g *gatherer) walk(set ast.SelectionSet) *fault {
	for _, s := range set {
		var f *fault
		switch s := s.(type) {
		case *ast.Field:
			f = g.field(s)
		case *ast.InlineFragment:
			f = g.fragment(s.Directives, s.TypeCondition, s.SelectionSet)
		case *ast.FragmentSpread:
			f = g.spread(s)
		}
		if f != nil {
			return f
		}
	}
	return nil
}

func (g *gatherer) spread(s *ast.FragmentSpread) *fault {
	def := g.p.doc.Fragments.ForName(s.Name)
	if def == nil {
		return at(badValidation(`Unknown fragment "`+s.Name+`".`), s.Position)
	}
	if g.seen[s.Name] {
		return nil
	}
	included, f := g.p.included(s.Directives)
	if f != nil || !included {
		return f
	}
	g.seen[s.Name] = true
	return at2(g.fragment(nil, def.TypeCondition, def.SelectionSet), s.Position)
}

// fragment walks a fragment's fields. The schema has neither interfaces nor
// unions, so a condition names the type itself or is a mistake.
func (g *gatherer) fragment(d ast.DirectiveList, on string, set ast.SelectionSet) *fault {
	included, f := g.p.included(d)
	if f != nil || !included {
		return f
	}
	if on != "" && on != g.of.Name {
		return badValidation(`Fragment cannot be spread here as objects of type "` + g.of.Name + `" can never be of type "` + clip(on) + `".`)
	}
	return g.walk(set)
}

func at2(f *fault, p *ast.Position) *fault {
	if f == nil {
		return nil
	}
	return at(f, p)
}

func (g *gatherer) field(s *ast.Field) *fault {
	included, f := g.p.included(s.Directives)
	if f != nil || !included {
		return at2(f, s.Position)
	}
	if g.p.fields++; g.p.fields > g.p.limits.Fields {
		return limitFault("fields", g.p.limits.Fields, "fields")
	}
	key := orElse(s.Alias, s.Name)
	def := fieldOf(g.of, s.Name)
	if def == nil {
		return at(badValidation(`Cannot query field "`+s.Name+`" on type "`+g.of.Name+`".`), s.Position)
	}
	given, f := g.p.coerce.arguments(s.Arguments, def.Arguments)
	if f != nil {
		return at2(f, s.Position)
	}
	m := g.byKey[key]
	if m == nil {
		if key != s.Name {
			if g.p.aliases++; g.p.aliases > g.p.limits.Aliases {
				return limitFault("aliases", g.p.limits.Aliases, "aliases")
			}
		}
		m = &merged{def: def, node: &node{
			key: key, name: s.Name, typ: def.Type, of: g.p.schema.Types[def.Type.Name()], args: given,
			resolve: g.p.types[g.of.Name][s.Name],
		}}
		if s.Position != nil {
			m.node.line, m.node.col = s.Position.Line, s.Position.Column
		}
		g.byKey[key] = m
		g.order = append(g.order, m)
	} else if f := g.merges(m, s, given); f != nil {
		return at(f, s.Position)
	}
	if len(s.SelectionSet) > 0 {
		m.sets = append(m.sets, s.SelectionSet)
	}
	return nil
}

// merges refuses a field that asks for something else than the one of its key.
func (g *gatherer) merges(m *merged, s *ast.Field, given args) *fault {
	same := m.node.name == s.Name
	if same {
		var f *fault
		if same, f = g.p.coerce.same(m.node.args, given); f != nil {
			return f
		}
	}
	if !same {
		return badValidation(`Fields "` + m.node.key + `" conflict: they ask for different things under one name. Use different aliases.`)
	}
	return nil
}

// typename is the definition of the field every object has.
func fieldOf(of *ast.Definition, name string) *ast.FieldDefinition {
	if name == "__typename" {
		return &ast.FieldDefinition{Name: name, Type: ast.NamedType("String", nil)}
	}
	return of.Fields.ForName(name)
}

// included decides @skip and @include, the only directives there are.
func (p *planner) included(list ast.DirectiveList) (bool, *fault) {
	keep := true
	for _, d := range list {
		if d.Name != "skip" && d.Name != "include" {
			return false, at(badValidation(`Unknown directive "@`+clip(d.Name)+`".`), d.Position)
		}
		arg := d.Arguments.ForName("if")
		if arg == nil {
			return false, at(badValidation(`Directive "@`+d.Name+`" argument "if" of type "Boolean!" is required.`), d.Position)
		}
		v, f := p.coerce.literal(arg.Value, ast.NonNullNamedType("Boolean", nil), "if")
		if f != nil {
			return false, at(f, d.Position)
		}
		on, ok := v.(bool)
		if !ok {
			return false, at(badInput("if: expected Boolean!, found null"), d.Position)
		}
		if on == (d.Name == "skip") {
			keep = false
		}
	}
	return keep, nil
}
