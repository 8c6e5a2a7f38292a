package fastcheck

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Program validates values by one schema. It is immutable and safe for concurrent use.
type Program struct {
	root  *node
	nodes map[*jsonschema.Schema]*node // nodes of all schemas; nil if there are gaps
	gaps  []string
}

// Accepts reports whether v is certainly valid. If it returns false, v may be valid or invalid.
func (p *Program) Accepts(v any) bool { return p.root.check(v) == yes }

// Gaps lists the schemas that prevent the program from accepting anything, each as its location and the reason, in a
// fixed order. It is empty for most programs.
func (p *Program) Gaps() []string { return slices.Clone(p.gaps) }

// verdict is the result of validating a value. The zero value is unsure.
type verdict int

const (
	// unsure leaves the value to jsonschema/v5. A schema that depends on an unsure verdict is unsure itself.
	unsure verdict = iota
	// no is as certain as yes, because "not" and "if" depend on it.
	no
	yes
)

func verdictOf(valid bool) verdict {
	if valid {
		return yes
	}
	return no
}

// test is one requirement of a schema on values of a type.
type test[T any] func(v T) verdict

// node is one compiled schema with its tests for values of each type. Tests for other types do not apply to a value.
type node struct {
	// fixed is the verdict on every value if settled is set: yes or no for a boolean schema, unsure for a schema with
	// gaps.
	fixed   verdict
	settled bool
	types   types
	objects []test[map[string]any]
	arrays  []test[[]any]
	strings []test[string]
	numbers []test[float64]
	// values are the tests that apply to every value, including "$ref" and "allOf".
	values []test[any]
	// evaluates is the set of members that the schema evaluates in every object that it accepts, or nil if the set
	// depends on the object.
	evaluates *coverage
}

func (n *node) demandsNothing() bool {
	return n.types == 0 && len(n.objects)+len(n.arrays)+len(n.strings)+len(n.numbers)+len(n.values) == 0
}

func (n *node) check(v any) verdict {
	if n.settled {
		return n.fixed
	}
	var r verdict
	switch v := v.(type) {
	case map[string]any:
		r = firstNotYes(n.types.allow(typeObject), n.objects, v)
	case []any:
		r = firstNotYes(n.types.allow(typeArray), n.arrays, v)
	case string:
		r = firstNotYes(n.types.allow(typeString), n.strings, v)
	case json.Number:
		r = n.checkNumber(v)
	case bool:
		r = n.types.allow(typeBoolean)
	case nil:
		r = n.types.allow(typeNull)
	}
	if r != yes {
		return r
	}
	return firstNotYes(yes, n.values, v)
}

// checkNumber parses the number only if its value is needed.
func (n *node) checkNumber(v json.Number) verdict {
	r := n.types.allow(typeNumber)
	integers := r == no && n.types&typeInteger != 0
	if !integers && (r == no || len(n.numbers) == 0) {
		return r
	}
	f, ok := parse(string(v))
	if !ok {
		return unsure
	}
	if integers {
		r = verdictOf(f == math.Trunc(f))
	}
	return firstNotYes(r, n.numbers, f)
}

// firstNotYes returns r or the result of the first test that is not yes.
func firstNotYes[T any](r verdict, tests []test[T], v T) verdict {
	for i := 0; r == yes && i < len(tests); i++ {
		r = tests[i](v)
	}
	return r
}

// types is a set of JSON types. The empty set means all types.
type types uint8

const (
	typeNull types = 1 << iota
	typeBoolean
	typeNumber
	typeInteger
	typeString
	typeArray
	typeObject
)

func (s types) allow(t types) verdict { return verdictOf(s == 0 || s&t != 0) }

// typeNamed returns the type with the given name, or 0.
func typeNamed(name string) types {
	switch name {
	case "null":
		return typeNull
	case "boolean":
		return typeBoolean
	case "number":
		return typeNumber
	case "integer":
		return typeInteger
	case "string":
		return typeString
	case "array":
		return typeArray
	case "object":
		return typeObject
	}
	return 0
}
