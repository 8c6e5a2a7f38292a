// Package fastcheck judges valid JSON values quickly, by JSON Schemas that
// github.com/santhosh-tekuri/jsonschema/v5 compiled.
//
// Compile turns a compiled schema into a tree of small functions. A program
// says yes to a value, or says nothing: then jsonschema/v5 judges it, whose
// word on every refusal and its reasons is the only one. A yes that is missing
// costs time; a yes too many would be a hole. So nothing is taken for harmless:
// a schema with anything that is not implemented exactly as jsonschema/v5 has
// it becomes a gap, which never says yes, and Gaps tells about it. Whatever can
// lead jsonschema/v5 into a loop makes the whole program one.
//
// What is implemented is dialect 2020-12 without dynamic references, with
// unevaluatedProperties and unevaluatedItems where the schema alone, not the
// value, decides what is evaluated, and formats that the compiler asserts.
//
// Invariants: a program says yes only to what jsonschema/v5 accepts; one
// without gaps says yes to all of that, but for values with a number of more
// than 19 digits or an exponent beyond 999. Programs are immutable, safe for
// concurrent use, use no reflection, and allocate nothing for most values.
// Values are what gateway/strictjson yields: map[string]any, []any, string, bool,
// nil and json.Number within its bounds. Where a program comes upon anything
// else it does not say yes, but it does not look into branches that cannot
// change its verdict.
//
//	program := fastcheck.Compile(compiler, schema)
//	if program.Accepts(value) {
//		return nil
//	}
//	return schema.Validate(value)
package fastcheck
