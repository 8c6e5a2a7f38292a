package strictyaml

import (
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// node is a value of the file: what the decoder and the position index work on, free of the YAML library.
type node struct {
	kind    kind
	at      place  // of the value; for a value that is missing, of its key
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
		out = &node{kind: kindMapping, at: s.start(n.IsFlowStyle, n.Start, owner)}
		index[path] = owner
		s.entries(out, n.Values, path, index, depth)
	case *ast.MappingValueNode:
		out = &node{kind: kindMapping, at: owner}
		index[path] = owner
		s.entries(out, []*ast.MappingValueNode{n}, path, index, depth)
	case *ast.SequenceNode:
		out = &node{kind: kindList, at: s.start(n.IsFlowStyle, n.Start, owner)}
		index[path] = owner
		for i, item := range n.Values {
			out.items = append(out.items, s.node(item, s.itemPlace(n, i), Index(path, i), index, depth+1))
		}
	default:
		out = s.scalar(n, owner, path)
		index[path] = out.at
	}
	return out
}

// start is where a collection is said to be: at its bracket, or for block style at its key or dash.
func (s *source) start(flow bool, t *token.Token, owner place) place {
	if flow && t != nil {
		return s.placeOf(t)
	}
	return owner
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
	case *ast.MappingValueNode:
		t = v.Key.GetToken()
	}
	return s.placeOf(t)
}

// entries adds the entries of a mapping, each key once.
func (s *source) entries(out *node, values []*ast.MappingValueNode, path string, index map[string]place, depth int) {
	first := make(map[string]place, len(values))
	for _, v := range values {
		at := s.placeOf(v.Key.GetToken())
		key, ok := keyText(v.Key)
		if !ok {
			s.fault(at, Key(path, key), "quote it", "keys are strings")
			continue
		}
		here := Key(path, key)
		if before, ok := first[key]; ok {
			s.fault(at, here, "", "duplicate key, first at line %d", before.line)
			continue
		}
		first[key] = at
		out.entries = append(out.entries, entry{key: key, at: at, value: s.node(v.Value, at, here, index, depth+1)})
	}
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
	at := s.placeOf(t)
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
