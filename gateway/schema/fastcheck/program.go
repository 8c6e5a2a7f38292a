package fastcheck

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Program judges values by one schema. It is immutable.
type Program struct {
	root  *node
	nodes map[*jsonschema.Schema]*node // those of all schemas, nil with gaps
	gaps  []string
}

// Accepts reports whether v is certain to be valid. False says nothing: v may
// be invalid, or beyond the program's knowledge.
func (p *Program) Accepts(v any) bool { return p.root.check(v) == yes }

// Gaps lists the schemas that keep the program from accepting anything, each as
// its location and the reason, in a fixed order; none for most programs.
func (p *Program) Gaps() []string { return slices.Clone(p.gaps) }

// verdict is the result of a schema for a value. The zero value is the careful one.
type verdict int

const (
	// unsure leaves the value to jsonschema/v5. A schema that needs an unsure
	// verdict is unsure itself.
	unsure verdict = iota
	// no is as certain as yes: "not" and "if" build on it.
	no
	yes
)

func verdictOf(valid bool) verdict {
	if valid {
		return yes
	}
	return no
}

// test is one demand of a schema on values of a type.
type test[T any] func(v T) verdict

// node is one schema: demands on values of each type. A demand says nothing
// about values of another type.
type node struct {
	// fixed is the verdict on every value when settled is set: yes or no for a
	// boolean schema, unsure for one with gaps.
	fixed   verdict
	settled bool
	types   types
	objects []test[map[string]any]
	arrays  []test[[]any]
	strings []test[string]
	numbers []test[float64]
	// values are demands on every value, "$ref" and "allOf" among them.
	values []test[any]
	// evaluates is the set of members that the schema evaluates in all objects that it accepts, nil if that
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

// checkNumber reads the number only when something depends on its value.
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

// firstNotYes returns the first verdict that is not yes, beginning with r.
func firstNotYes[T any](r verdict, tests []test[T], v T) verdict {
	for i := 0; r == yes && i < len(tests); i++ {
		r = tests[i](v)
	}
	return r
}

// types is a set of JSON types; the empty set stands for all.
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

// typeNamed returns 0 for a name that is not a type's.
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
