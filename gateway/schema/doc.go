// Package schema describes the platform's v2 API: its operations, the schemas of their parameters and bodies, and the
// rules between fields.
//
// The source is openapi.json, an OpenAPI 3.1 document that is embedded in the binary and served to callers; it is not
// generated. Sandboxes are described separately in sandboxes.json, because the platform's own description lacks them;
// both files are joined into one document. Operations that the platform's own description lacks have x-unpublished. Load
// reads the document once. Its result is immutable and safe for concurrent use, and compiles each schema on first use.
// LoadRun does the same for the run interface, which run.json describes; that description covers the envelope of a job
// but not its input.
//
// Each schema has two validators. A fastcheck program accepts valid bodies within microseconds. Bodies that it does not
// accept are validated by jsonschema, which produces every refusal and its reasons.
//
// A body is validated in two steps, because callers react differently to them. ValidateBody validates it against the
// operation's JSON Schema; a violation is a mistake of the caller that can never succeed (422). CheckRules applies rules
// that a schema cannot express but the body alone decides (400). Rules that need more than the body, such as the
// available hardware, are outside this package.
//
// Invariants: the package reads nothing from network or disk. If a validator fails, the body is refused. Violations are
// in a fixed order, have locations, and contain at most 64 characters of the body.
//
//	api, err := schema.Load()
//	op := api.Operation("createPod")
//	for _, v := range op.ValidateBody(body) {
//		fmt.Println(v) // $.gpu.count: must be at least 1
//	}
package schema
