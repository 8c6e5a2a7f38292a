package compiler

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ExampleYAML returns a configuration section that enables the policy.
func (p *Policy) ExampleYAML() ([]byte, error) {
	type entry struct {
		Policy string `yaml:"policy"`
		Params any    `yaml:"params"`
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	err := e.Encode(map[string][]entry{"policies": {{p.Name, p.Example}}})
	return b.Bytes(), err
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
