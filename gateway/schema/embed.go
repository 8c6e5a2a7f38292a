package schema

import _ "embed"

// openAPI is the description of the v2 API; see doc.go.
//
//go:embed openapi.json
var openAPI []byte

// sandboxes describes the operations that the platform's own description lacks; see doc.go.
//
//go:embed sandboxes.json
var sandboxes []byte

// runInterface describes the run interface; see doc.go.
//
//go:embed run.json
var runInterface []byte
