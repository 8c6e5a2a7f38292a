package schema

import _ "embed"

// openAPI is the API description; see doc.go.
//
//go:embed openapi.json
var openAPI []byte

// runInterface describes the run interface; see doc.go.
//
//go:embed run.json
var runInterface []byte
