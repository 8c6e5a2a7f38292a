package config

import (
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// Schema returns a JSON Schema of the configuration file. Editors use it for completion and checks.
func Schema() ([]byte, error) {
	return strictyaml.Schema(settings.Default(), "tollgate configuration")
}
