package config

import (
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// Schema returns the JSON Schema of the configuration file, for editors.
func Schema() ([]byte, error) {
	return strictyaml.Schema(settings.Default(), strictyaml.SchemaOptions{Title: "tollgate configuration"})
}
