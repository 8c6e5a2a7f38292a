// Package fastcheck quickly decides whether JSON values match schemas that were compiled by
// github.com/santhosh-tekuri/jsonschema/v5.
//
// Compile converts a compiled schema to a tree of functions, a Program. If a Program does not accept a value, jsonschema/v5 must validate
// the value; only jsonschema/v5 rejects values and reports reasons. Narrow reduces the schema to the parts that may be invalid. If a
// Program does not accept a valid value, validation only takes longer; if it accepted an invalid value, this would be a security hole.
// Therefore a Program implements only the keywords of dialect 2020-12 that the embedded description uses, exactly like jsonschema/v5. A
// schema that contains anything else has gaps: its Program accepts no values, and jsonschema/v5 validates all of them.
//
// Invariants: a program accepts only values that jsonschema/v5 accepts. A program without gaps accepts all values that jsonschema/v5
// accepts, with three exceptions: values with a number that has an exponent, values with a number that has more than 15 digits and is not
// an integer within 2^53, and values with an array of more than 20 elements that must be unique. Programs are immutable and safe for
// concurrent use. For most values, they do not allocate memory. Values have the types of gateway/strictjson: map[string]any, []any, string,
// bool, nil and json.Number. A value of another type is accepted only where its content is irrelevant.
//
//	program := fastcheck.Compile(compiler, schema)
//	if program.Accepts(value) {
//		return nil
//	}
//	return program.Narrow(schema, value).Validate(value)
package fastcheck
