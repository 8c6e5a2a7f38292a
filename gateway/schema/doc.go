// Package schema knows the platform's v2 API: its operations, what their
// parameters and bodies may look like, and which rules hold between fields.
//
// The knowledge lives in openapi.json, an OpenAPI 3.1 document embedded in the binary and served to callers. It is the
// source, not generated from anything. Sandboxes are described apart in sandboxes.json, because the platform's own description
// lacks them; the two files are joined into one document. An operation that the platform's own description lacks has
// x-unpublished. Load reads the document once; its result is immutable and safe for concurrent use, and compiles each schema
// when a call first needs it. LoadRun does the same for the run interface, which run.json describes: the envelope of a job,
// never its input.
//
// Two validators know each schema. A program of fastcheck accepts valid bodies, in
// microseconds; those that it leaves open are judged by jsonschema, from which every
// refusal and its reasons come.
//
// A body is judged in two steps, because callers react differently to them. ValidateBody
// holds it against the operation's JSON Schema; a fault there is the caller's mistake
// (422) and will never pass. CheckRules applies the rules that a schema cannot express and
// the body alone decides (400). Rules that need more than the body, such as what hardware
// exists, are not for this package.
//
// Invariants: nothing is fetched, from network or disk; a body for which a validator fails
// is refused, never passed; faults come in a fixed order, with places, and never repeat
// more than 64 characters of the body.
//
//	api, err := schema.Load()
//	op := api.Operation("createPod")
//	for _, v := range op.ValidateBody(body) {
//		fmt.Println(v) // $.gpu.count: must be at least 1
//	}
package schema
