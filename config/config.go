package config

import (
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway"
)

// Schema returns the JSON Schema of the file, for editors.
func Schema() ([]byte, error) {
	return strictyaml.Schema(gateway.Default(), strictyaml.SchemaOptions{Title: "tollgate configuration"})
}
