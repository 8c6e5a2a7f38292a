// Package fastcheck decides quickly whether JSON values are valid by schemas
// that github.com/santhosh-tekuri/jsonschema/v5 compiled.
//
// Compile turns a compiled schema into a tree of small functions. A program
// either accepts a value or leaves it to jsonschema/v5, which alone refuses
// values and gives the reasons; Narrow spares it the parts that are valid for certain. A
// value accepted too few costs time; one too many would be a hole. So a program
// implements the keywords of dialect 2020-12 that the embedded description uses,
// each exactly as jsonschema/v5 does, and a schema that contains anything else
// anywhere has gaps: its program accepts nothing, and every value is judged by
// jsonschema/v5.
//
// Invariants: a program accepts only what jsonschema/v5 accepts; one without
// gaps accepts all of that, except for values with a number of more than 15
// digits that is not an integer within 2^53, with an exponent, or with an array
// of more than 20 elements that must be unique. Programs are immutable, safe for
// concurrent use, and allocate nothing for most values. Values are what
// gateway/strictjson yields: map[string]any, []any, string, bool, nil and
// json.Number. A value that holds anything else is accepted only where that
// cannot matter.
//
//	program := fastcheck.Compile(compiler, schema)
//	if program.Accepts(value) {
//		return nil
//	}
//	return program.Narrow(schema, value).Validate(value)
package fastcheck
