package fastcheck

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Program quickly accepts most values that are valid under a schema. It is immutable and safe for concurrent use.
type Program struct {
	root  *node
	nodes map[*jsonschema.Schema]*node // nodes of all schemas; nil if there are gaps
	gaps  []string
}

// Accepts returns true if v is certainly valid. If it returns false, v may still be valid.
func (p *Program) Accepts(v any) bool { return p.root.check(v) == yes }

// Gaps lists the subschemas that programs do not implement, each with its location and the reason, in a fixed order. If the list is not
// empty, the program accepts no values. It is empty for most programs.
func (p *Program) Gaps() []string { return slices.Clone(p.gaps) }

// verdict is the result of validating a value. The zero value is unsure.
type verdict int

const (
	// unsure means that jsonschema/v5 must validate the value. If the verdict of a schema depends on an unsure verdict, it is also unsure.
	unsure verdict = iota
	// no means that the value is certainly invalid. It must be as reliable as yes, because "not" and "if" depend on it.
	no
	yes
)

func verdictOf(valid bool) verdict {
	if valid {
		return yes
	}
	return no
}

// test checks one requirement of a schema for values of a type.
type test[T any] func(v T) verdict

// node is a compiled schema. It has tests for each type of value. Only the tests for the type of a value apply to the value.
type node struct {
	// fixed is the verdict on every value if settled is true. It is yes or no for a boolean schema, and unsure for a schema with gaps.
	fixed   verdict
	settled bool
	types   types
	objects []test[map[string]any]
	arrays  []test[[]any]
	strings []test[string]
	numbers []test[float64]
	// values are the tests that apply to every value, including "$ref" and "allOf".
	values []test[any]
	// evaluates is the set of members that the schema evaluates in every object that the schema accepts. It is nil if the set depends on the
	// object.
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

// firstNotYes returns r if r is not yes. Otherwise it returns the first result of a test that is not yes, or yes if all results are yes.
func firstNotYes[T any](r verdict, tests []test[T], v T) verdict {
	for i := 0; r == yes && i < len(tests); i++ {
		r = tests[i](v)
	}
	return r
}

// types is a set of JSON types. The empty set means all types.
type types uint8

const ( // in the order of typeNamed
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
	i := slices.Index([]string{"null", "boolean", "number", "integer", "string", "array", "object"}, name)
	if i < 0 {
		return 0
	}
	return 1 << i
}
