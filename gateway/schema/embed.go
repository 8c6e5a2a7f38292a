package schema

import _ "embed"

// openAPI is the description of the v2 API; see doc.go.
//
//go:embed openapi.json
var openAPI []byte

// sandboxes is the description of the operations for sandboxes; see doc.go.
//
//go:embed sandboxes.json
var sandboxes []byte

// runInterface is the description of the run interface; see doc.go.
//
//go:embed run.json
var runInterface []byte
