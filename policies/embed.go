package policies

import (
	"embed"
	"slices"
)

// regoFiles holds the library: a file per policy, its tests beside it, and the
// functions they share in support.
//
//go:embed rego/*.rego rego/support/*.rego
var regoFiles embed.FS

// inputSchema describes the input document.
//
//go:embed input.schema.json
var inputSchema []byte

// InputSchema is the JSON Schema (2020-12) of the input document, which
// policies are type-checked against. The caller owns the copy.
func InputSchema() []byte { return slices.Clone(inputSchema) }
