package fastcheck

import (
	"maps"
	"math/big"
	"slices"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Accepter is implemented by extension schemas ([jsonschema.ExtSchema]) that programs support. Accepts must return true if and only if
// Validate returns nil, and Validate must not mark anything as evaluated. A schema with any other extension is a gap; see [Program.Gaps].
type Accepter interface {
	Accepts(v any) bool
}

// Compile compiles s to a Program. The compiler c must have compiled s; its settings determine how formats are validated. Neither c nor s
// may be modified afterwards.
func Compile(c *jsonschema.Compiler, s *jsonschema.Schema) *Program {
	if gaps := gaps(c, s); gaps != nil {
		return &Program{root: &node{settled: true}, gaps: gaps}
	}
	b := &builder{settings: c, nodes: make(map[*jsonschema.Schema]*node)}
	return &Program{root: b.node(s), nodes: b.nodes}
}

type builder struct {
	settings *jsonschema.Compiler
	// nodes holds the nodes compiled so far. It includes unfinished nodes, because a schema may contain itself.
	nodes map[*jsonschema.Schema]*node
}

// node returns the node of s. It compiles each schema only once.
func (b *builder) node(s *jsonschema.Schema) *node {
	if n := b.nodes[s]; n != nil {
		return n
	}
	n := &node{}
	b.nodes[s] = n
	if s.Always != nil {
		n.settled, n.fixed = true, verdictOf(*s.Always)
		return n
	}
	for _, name := range s.Types {
		n.types |= typeNamed(name)
	}
	addNumbers(n, s)
	addStrings(n, s)
	b.addArrays(n, s)
	b.addObjects(n, s)
	b.addValues(n, s)
	b.addBranches(n, s)
	b.addLast(n, s)
	n.evaluates = evaluates(s)
	if n.demandsNothing() {
		n.settled, n.fixed = true, yes
	}
	return n
}

func addNumbers(n *node, s *jsonschema.Schema) {
	add := func(limit *big.Rat, fits func(v, limit float64) bool) {
		if limit != nil {
			bound, _ := limit.Float64()
			n.numbers = append(n.numbers, func(v float64) verdict { return verdictOf(fits(v, bound)) })
		}
	}
	add(s.Minimum, func(v, limit float64) bool { return v >= limit })
	add(s.Maximum, func(v, limit float64) bool { return v <= limit })
}

// addStrings adds tests that apply to strings. Lengths are counted in code points.
func addStrings(n *node, s *jsonschema.Schema) {
	if least := s.MinLength; least != -1 {
		n.strings = append(n.strings, func(v string) verdict { return verdictOf(utf8.RuneCountInString(v) >= least) })
	}
	if most := s.MaxLength; most != -1 {
		n.strings = append(n.strings, func(v string) verdict { return verdictOf(len(v) <= most || utf8.RuneCountInString(v) <= most) })
	}
	if pattern := s.Pattern; pattern != nil {
		n.strings = append(n.strings, func(v string) verdict { return verdictOf(pattern.MatchString(v)) })
	}
}

func (b *builder) addArrays(n *node, s *jsonschema.Schema) {
	if least := s.MinItems; least != -1 {
		n.arrays = append(n.arrays, func(items []any) verdict { return verdictOf(len(items) >= least) })
	}
	if most := s.MaxItems; most != -1 {
		n.arrays = append(n.arrays, func(items []any) verdict { return verdictOf(len(items) <= most) })
	}
	if s.Items2020 != nil {
		n.arrays = append(n.arrays, each(b.node(s.Items2020)))
	}
	if s.UniqueItems {
		n.arrays = append(n.arrays, unique)
	}
}

// addValues adds tests that apply to values of every type.
func (b *builder) addValues(n *node, s *jsonschema.Schema) {
	for _, allowed := range [][]any{s.Constant, s.Enum} {
		if len(allowed) > 0 {
			n.values = append(n.values, oneOf(allowed))
		}
	}
	if valid := b.format(s.Format); valid != nil {
		n.values = append(n.values, func(v any) verdict { return verdictOf(valid(v)) })
	}
}

// format returns the function that validates a format, or nil for an unknown format. Formats of the compiler take precedence over those of
// package jsonschema.
func (b *builder) format(name string) func(any) bool {
	if f, ok := b.settings.Formats[name]; ok {
		return f
	}
	return jsonschema.Formats[name]
}

// addBranches adds the schemas that apply to the value as a whole.
func (b *builder) addBranches(n *node, s *jsonschema.Schema) {
	for _, sub := range always(s) {
		n.values = append(n.values, b.node(sub).check)
	}
	if len(s.OneOf) > 0 {
		branches := make([]*node, len(s.OneOf))
		for i, sub := range s.OneOf {
			branches[i] = b.node(sub)
		}
		n.values = append(n.values, exactlyOneOf(branches))
	}
	if s.Not != nil {
		sub := b.node(s.Not)
		n.values = append(n.values, func(v any) verdict { return not(sub.check(v)) })
	}
	if s.If != nil && s.Then != nil {
		n.values = append(n.values, conditional(b.node(s.If), b.node(s.Then)))
	}
}

// addLast adds tests that may be used only for values that all other keywords accept.
func (b *builder) addLast(n *node, s *jsonschema.Schema) {
	for _, name := range slices.Sorted(maps.Keys(s.Extensions)) {
		accepter := s.Extensions[name].(Accepter) // otherwise s is a gap
		n.values = append(n.values, func(v any) verdict { return verdictOf(accepter.Accepts(v)) })
	}
	if s.UnevaluatedProperties == nil {
		return
	}
	surely := evaluated(s, always)
	if surely.all {
		return
	}
	rest := b.node(s.UnevaluatedProperties)
	n.values = append(n.values, func(v any) verdict {
		o, _ := v.(map[string]any)
		for name, member := range o {
			if !surely.names[name] {
				if r := rest.check(member); r != yes {
					return r
				}
			}
		}
		return yes
	})
}
