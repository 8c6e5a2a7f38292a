package strictyaml

import (
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// node is a value of the file: what the decoder and the position index work on, free of the YAML library.
type node struct {
	kind    kind
	at      place  // of its faults: a block collection is at its key or dash, and so is a value that is missing
	text    string // of a string its value, of other scalars what is written
	entries []entry
	items   []*node
}

type entry struct {
	key   string
	at    place
	value *node
}

type kind uint8

const (
	kindBroken  kind = iota // a fault has been recorded: nothing more to say about it
	kindMissing             // a key or list entry without a value
	kindNull
	kindBool
	kindInteger
	kindFloat
	kindOdd // a number to some YAML readers and not, or another one, to others
	kindString
	kindList
	kindMapping
)

// String says what was found, for messages.
func (k kind) String() string {
	return [...]string{
		"nothing", "nothing", "null", "true or false", "an integer", "a number", "an ambiguous number", "a string", "a list",
		"a mapping",
	}[k]
}

// build turns the document into a tree, recording what a configuration may not hold. Positions of all values go into index.
func (s *source) build(doc ast.Node, index map[string]place) *node {
	return s.node(doc, place{1, 1}, "", index, 1)
}

// node builds the tree of n, which is written at path under the key or dash at owner.
func (s *source) node(n ast.Node, owner place, path string, index map[string]place, depth int) *node {
	if n == nil {
		index[path] = owner
		return &node{kind: kindMissing, at: owner}
	}
	if depth > MaxDepth {
		s.fault(s.placeOf(n.GetToken()), path, "", "nested deeper than %d levels", MaxDepth)
		return &node{kind: kindBroken, at: owner}
	}
	var out *node
	switch n := n.(type) {
	case *ast.MappingNode:
		out = &node{kind: kindMapping, at: owner}
		if n.IsFlowStyle {
			out.at = s.placeOf(n.Start)
		}
		index[path] = owner
		s.entries(out, n, path, index, depth)
	case *ast.SequenceNode:
		out = &node{kind: kindList, at: owner}
		if n.IsFlowStyle {
			out.at = s.placeOf(n.Start)
		}
		index[path] = owner
		for i, item := range n.Values {
			at, here := s.itemPlace(n, i), Index(path, i)
			value := s.node(item, at, here, index, depth+1)
			if !n.IsFlowStyle && i < len(n.Entries) && value.kind != kindMissing && at.col <= s.placeOf(n.Entries[i].Start).col {
				s.fault(at, here, "", "the value is not indented behind its dash")
			}
			out.items = append(out.items, value)
		}
	default:
		out = s.scalar(n, owner, path)
		index[path] = out.at
	}
	return out
}

// itemPlace is where entry i of a list begins: behind its dash.
func (s *source) itemPlace(n *ast.SequenceNode, i int) place {
	t := n.Values[i].GetToken()
	switch v := n.Values[i].(type) {
	case *ast.NullNode:
		if i < len(n.Entries) {
			t = n.Entries[i].Start
		}
	case *ast.MappingNode:
		if !v.IsFlowStyle && len(v.Values) > 0 {
			t = v.Values[0].Key.GetToken()
		}
	}
	return s.placeOf(t)
}

// entries adds the entries of a mapping, each key once.
func (s *source) entries(out *node, n *ast.MappingNode, path string, index map[string]place, depth int) {
	first := make(map[string]place, len(n.Values))
	column := 0
	for _, v := range n.Values {
		at, known := s.find(v.Key.GetToken())
		key, isString := keyText(v.Key)
		here := Key(path, key)
		switch {
		case !known:
			s.fault(at, here, "quote it", "a key without quotes is on one line, without tabs")
			continue
		case !isString:
			s.fault(at, here, "quote it", "keys are strings")
			continue
		case !n.IsFlowStyle && column != 0 && at.col != column:
			s.fault(at, here, "", "is not indented like the keys before it")
			continue
		case s.glued(n, v):
			s.fault(at, here, "", "write a space behind the colon")
			continue
		}
		column = at.col
		if before, ok := first[key]; ok {
			s.fault(at, here, "", "duplicate key, first at line %d", before.line)
			continue
		}
		first[key] = at
		value := s.node(v.Value, at, here, index, depth+1)
		if !n.IsFlowStyle {
			s.indented(v.Value, value, at, here)
		}
		out.entries = append(out.entries, entry{key: key, at: at, value: value})
	}
}

// indented checks that the value of a key in block style, when it is not on the key's line, is further right, or a list at its column:
// the parser takes more than that for its value.
func (s *source) indented(n ast.Node, value *node, key place, path string) {
	at := value.at
	if value.kind == kindBroken || value.kind == kindMissing {
		return
	}
	if list, ok := n.(*ast.SequenceNode); ok && !list.IsFlowStyle {
		if s.placeOf(list.Start).col >= key.col {
			return
		}
	} else if mapping, ok := n.(*ast.MappingNode); ok && !mapping.IsFlowStyle {
		if len(value.entries) == 0 || value.entries[0].at.col > key.col {
			return
		}
	} else if at.line == key.line || at.col > key.col {
		return
	}
	s.fault(at, path, "", "the value is not indented below its key")
}

// glued tells an entry such as a:1, which to other readers is the text "a:1". In flow style, JSON's "a":1 is fine.
func (s *source) glued(n *ast.MappingNode, v *ast.MappingValueNode) bool {
	at, line := s.placeOf(v.Start), s.line(v.Start.Position.Line)
	if v.Start.Type != token.MappingValueType || n.IsFlowStyle && quoted(v.Key.GetToken()) || at.col >= len(line) {
		return false
	}
	after := line[at.col]
	return after != ' ' && after != '\t' && (!n.IsFlowStyle || !strings.ContainsRune(",]}", after))
}

// keyText is the text of a key, and whether it is a string.
func keyText(n ast.MapKeyNode) (string, bool) {
	k, ok := n.(*ast.StringNode)
	if !ok {
		return n.GetToken().Value, false
	}
	if quoted(k.Token) {
		return k.Value, true
	}
	return k.Value, resolve(k.Value) == kindString
}

// scalar builds a leaf.
func (s *source) scalar(n ast.Node, owner place, path string) *node {
	t := n.GetToken()
	at, known := s.find(t)
	if !known {
		s.fault(owner, path, "quote it, or write it as a | block", "text without quotes is on one line, without tabs")
		return &node{kind: kindBroken, at: owner}
	}
	switch n := n.(type) {
	case *ast.StringNode:
		if quoted(t) {
			return &node{kind: kindString, at: at, text: n.Value}
		}
		return &node{kind: resolve(n.Value), at: at, text: n.Value}
	case *ast.LiteralNode:
		return &node{kind: kindString, at: at, text: n.Value.Value}
	case *ast.NullNode:
		if t.Type == token.ImplicitNullType {
			return &node{kind: kindMissing, at: owner}
		}
		return &node{kind: kindNull, at: at}
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return &node{kind: resolve(t.Value), at: at, text: t.Value}
	}
	s.fault(at, path, "", "%s is not supported here", n.Type())
	return &node{kind: kindBroken, at: at}
}

func quoted(t *token.Token) bool {
	return t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType
}
