package compiler

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// ExampleYAML returns a configuration section that enables the policy.
func (p *Policy) ExampleYAML() string {
	return EntriesYAML([]policyconfig.Entry{{Policy: p.Name, Params: p.Example}})
}

// ParseEntries returns the entries of a configuration section, which has only the member policies.
func ParseEntries(section string) ([]policyconfig.Entry, error) {
	var given struct {
		Policies []policyconfig.Entry `yaml:"policies"`
	}
	err := strictyaml.Decode("policies", []byte(section), &given)
	return given.Policies, err
}

// EntriesYAML returns a configuration section with entries. Settings with their zero value are omitted.
func EntriesYAML(entries []policyconfig.Entry) string {
	var b strings.Builder
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	_ = e.Encode(map[string][]policyconfig.Entry{"policies": entries}) // decoded values can be encoded
	return b.String()
}

// TypeName describes the type of the parameter in a few words, such as "list of string".
func (p *Param) TypeName() string { return typeName(p.Schema) }

func typeName(schema map[string]any) string {
	if values, ok := schema["enum"].([]any); ok {
		out := make([]string, len(values))
		for i, v := range values {
			out[i] = fmt.Sprint(v)
		}
		return "one of " + strings.Join(out, ", ")
	}
	name, _ := schema["type"].(string)
	switch name {
	case "array":
		items, _ := schema["items"].(map[string]any)
		return "list of " + typeName(items)
	case "object":
		inner, _ := schema["additionalProperties"].(map[string]any)
		if inner == nil {
			return "map"
		}
		return "map of " + typeName(inner)
	case "":
		return "any"
	}
	if format, ok := schema["format"].(string); ok {
		return name + " (" + format + ")"
	}
	return name
}
