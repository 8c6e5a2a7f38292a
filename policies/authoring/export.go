package authoring

import (
	"encoding/json"
	"strings"

	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
	"github.com/tollgate-dev/tollgate/policies/regosandbox"
)

// Export returns the files, by path, that OPA's tools and editors need to work on an organisation's Rego: the library with its test
// inputs, the schema of the input, and the capabilities of the engine.
//
//	opa check --strict --schema input.schema.json --capabilities capabilities.json library my
//	opa test library my
func Export() map[string][]byte {
	capabilities, _ := json.MarshalIndent(regosandbox.Capabilities(), "", "  ") // names and types of functions
	out := map[string][]byte{"input.schema.json": policyinput.Schema(), "capabilities.json": append(capabilities, '\n')}
	for file, text := range compiler.Sources() {
		out["library/"+strings.TrimPrefix(file, "rego/")] = []byte(text)
	}
	return out
}
