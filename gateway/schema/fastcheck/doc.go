// Package fastcheck quickly decides whether JSON values match schemas that were compiled by
// github.com/santhosh-tekuri/jsonschema/v5.
//
// Compile converts a compiled schema to a tree of functions. A Program either accepts a value or leaves it to
// jsonschema/v5, which alone rejects values and reports the reasons; Narrow reduces that work to the parts that may be
// invalid. Not accepting a valid value costs time, whereas accepting an invalid value would be a security hole. Therefore
// a Program implements only the keywords of dialect 2020-12 that the embedded description uses, each exactly as in
// jsonschema/v5. If a schema contains anything else anywhere, it has gaps: its program accepts nothing, and jsonschema/v5
// validates every value.
//
// Invariants: a program accepts only values that jsonschema/v5 accepts. A program without gaps accepts all of them,
// except values that contain a number with an exponent, a number with more than 15 digits that is not an integer within
// 2^53, or an array of more than 20 elements that must be unique. Programs are immutable, safe for concurrent use, and do
// not allocate for most values. Values have the types of gateway/strictjson: map[string]any, []any, string, bool, nil and
// json.Number. A value of another type is accepted only where its content is irrelevant.
//
//	program := fastcheck.Compile(compiler, schema)
//	if program.Accepts(value) {
//		return nil
//	}
//	return program.Narrow(schema, value).Validate(value)
package fastcheck
