package schema

import _ "embed"

// openAPI is the API description; see doc.go.
//
//go:embed openapi.json
var openAPI []byte
