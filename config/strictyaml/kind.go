package strictyaml

import (
	"iter"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// kind is the type of a node's value, for decoding and for messages.
type kind uint8

const (
	kindBroken  kind = iota // already reported
	kindMissing             // a key or list entry without a value
	kindNull
	kindBool
	kindInteger
	kindFloat
	kindAmbiguous // read differently by different YAML parsers
	kindString
	kindList
	kindMapping
)

// String returns the name of the kind for messages.
func (k kind) String() string {
	return [...]string{
		"nothing", "nothing", "null", "true or false", "an integer", "a number", "an ambiguous number", "a string", "a list",
		"a mapping",
	}[k]
}

// Patterns of numbers in the core schema (YAML 1.2.2, section 10.3.2). The parser accepts further forms, which this package refuses.
var (
	integer = regexp.MustCompile(`^([-+]?(0|[1-9][0-9]*)|0o[0-7]+|0x[0-9a-fA-F]+)$`)
	float   = regexp.MustCompile(`^([-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
)

// kindOf returns the kind of a node that source.node has prepared.
func kindOf(n *yaml.Node) kind {
	switch {
	case n.Kind == yaml.MappingNode:
		return kindMapping
	case n.Kind == yaml.SequenceNode:
		return kindList
	case n.Kind != yaml.ScalarNode:
		return kindBroken
	case n.Style != 0:
		return kindString
	}
	return plainKind(n.Value)
}

// plainKind returns the kind of a scalar written without quotes.
func plainKind(text string) kind {
	tag := (&yaml.Node{Kind: yaml.ScalarNode, Value: text}).ShortTag()
	switch {
	case text == "":
		return kindMissing
	case tag == "!!null":
		return kindNull
	case tag == "!!bool":
		return kindBool
	case tag == "!!str" && text[0] >= 'A': // numbers do not begin with a letter
		return kindString
	case integer.MatchString(text):
		return kindInteger
	case float.MatchString(text):
		return kindFloat
	case tag == "!!int", tag == "!!float":
		return kindAmbiguous
	}
	return kindString
}

// isTrue returns the value of a scalar of kindBool.
func isTrue(text string) bool { return strings.EqualFold(text, "true") }

// entries iterates over the keys and values of a mapping.
func entries(n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(key, value *yaml.Node) bool) {
		for i := 0; i < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

func placeOf(n *yaml.Node) place { return place{n.Line, n.Column} }
