// Package schema describes the platform's v2 API: its operations, the schemas of their parameters and bodies, and the
// rules between fields.
//
// The description is openapi.json, an OpenAPI 3.1 document that is written by hand, embedded in the binary and served to callers. Sandboxes
// are missing in the platform's own description. They are described in sandboxes.json, and both files are joined into one document.
// Operations that are missing in the platform's own description have the extension x-unpublished. Load parses the document. LoadRun does
// the same for run.json, the description of the run interface, which describes the envelope of a job but not its input. The results are
// immutable and safe for concurrent use, and compile each schema on first use.
//
// Each schema has two validators. A program of package fastcheck accepts most valid bodies within microseconds. The library jsonschema
// validates all other bodies; only this library refuses bodies, with reasons.
//
// A body is validated in two steps, which result in different HTTP statuses. ValidateBody validates the body against the JSON Schema of the
// operation; a violation results in 422. CheckRules checks rules between the fields of the body that JSON Schema cannot express; a
// violation results in 400, or in 422 for a malformed template ID. Rules that depend on other data, such as the available hardware, are not
// checked by this package.
//
// Invariants: the package reads nothing from the network or from files. If a validator panics, the body is refused. Violations are in a
// fixed order, have locations, and contain at most 64 characters of the body.
//
//	api, err := schema.Load()
//	op := api.Operation("createPod")
//	for _, v := range op.ValidateBody(body) {
//		fmt.Println(v) // $.gpu.count: must be at least 1
//	}
package schema
