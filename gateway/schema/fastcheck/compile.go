package fastcheck

import (
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Accepter is what the schema of an extension (a [jsonschema.ExtSchema]) has to
// be besides: Accepts must say yes exactly when Validate returns nil, and
// Validate must not mark anything as evaluated. A schema with an extension that
// is no Accepter is a gap.
type Accepter interface {
	Accepts(v any) bool
}

// Compile makes a program of s, which c must have compiled: c knows how formats
// and contents are treated, which s does not tell. Neither may change later.
func Compile(c *jsonschema.Compiler, s *jsonschema.Schema) *Program {
	if loops := endless(s); len(loops) > 0 {
		return &Program{root: &node{settled: true}, gaps: loops}
	}
	b := &builder{settings: c, nodes: make(map[*jsonschema.Schema]*node), reasons: make(map[*jsonschema.Schema]string)}
	root := b.node(s)
	slices.Sort(b.gaps)
	return &Program{root: root, gaps: b.gaps}
}

type builder struct {
	settings *jsonschema.Compiler
	// nodes holds those in the making too, so a schema may contain itself.
	nodes   map[*jsonschema.Schema]*node
	reasons map[*jsonschema.Schema]string // what gap said
	gaps    []string
}

// node returns the node of s, made once.
func (b *builder) node(s *jsonschema.Schema) *node {
	if n := b.nodes[s]; n != nil {
		return n
	}
	n := &node{}
	b.nodes[s] = n
	if gap := b.gap(s); gap != "" {
		b.gaps = append(b.gaps, s.Location+": "+gap)
		n.settled = true
		return n
	}
	if s.Always != nil {
		n.settled, n.fixed = true, verdictOf(*s.Always)
		return n
	}
	for _, name := range s.Types {
		n.types |= typeNamed(name)
	}
	b.addNumbers(n, s)
	b.addTexts(n, s)
	b.addArrays(n, s)
	b.addObjects(n, s)
	b.addValues(n, s)
	b.addBranches(n, s)
	b.addExtensions(n, s)
	b.addUnevaluated(n, s)
	return n
}

// all returns the nodes of schemas, in their order.
func (b *builder) all(schemas []*jsonschema.Schema) []*node {
	nodes := make([]*node, len(schemas))
	for i, s := range schemas {
		nodes[i] = b.node(s)
	}
	return nodes
}

// gap says why s cannot be judged by, leaving aside the schemas within it; "" if
// it can. What jsonschema/v5 does not know at all is not in s, and is no gap.
func (b *builder) gap(s *jsonschema.Schema) string {
	reason, ok := b.reasons[s]
	if !ok {
		reason = b.findGap(s)
		b.reasons[s] = reason
	}
	return reason
}

func (b *builder) findGap(s *jsonschema.Schema) string {
	switch {
	case s.Draft != jsonschema.Draft2020:
		return "another dialect than 2020-12"
	case s.Items != nil || s.AdditionalItems != nil || s.RegexProperties:
		return "a keyword of an older dialect"
	case b.settings.AssertContent && (s.ContentEncoding != "" || s.ContentMediaType != ""):
		return "contentEncoding or contentMediaType"
	case s.Format != "" && b.format(s.Format) != nil && !b.settings.AssertFormat:
		return "a format that may or may not be asserted" // by the vocabulary of its metaschema
	case slices.ContainsFunc(s.Types, func(name string) bool { return typeNamed(name) == 0 }):
		return "an unknown type"
	case !numbersKnown(s):
		return "a number too long to calculate with"
	}
	for name, ext := range s.Extensions {
		if _, ok := ext.(Accepter); !ok {
			return "the extension " + name
		}
	}
	if !b.evaluationKnown(s) {
		return "what is evaluated depends on the value"
	}
	return ""
}

// addExtensions comes late because extensions of jsonschema/v5 do.
func (b *builder) addExtensions(n *node, s *jsonschema.Schema) {
	for _, name := range slices.Sorted(maps.Keys(s.Extensions)) {
		accepter := s.Extensions[name].(Accepter) // or s were a gap
		n.values = append(n.values, func(v any) verdict { return verdictOf(accepter.Accepts(v)) })
	}
}
