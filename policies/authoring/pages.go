package authoring

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
	"github.com/tollgate-dev/tollgate/policies/regosandbox"
)

// Library renders the reference of the library: one Markdown page per policy, named <policy>.md, and an index in README.md.
func Library() (map[string][]byte, error) {
	lib, err := compiler.Library()
	if err != nil {
		return nil, err
	}
	pages := map[string][]byte{}
	var index bytes.Buffer
	index.WriteString("# Built-in policies\n\nGenerated from `policies/rego`. To enable them, see [policies](../policies.md).\n\n" +
		"| policy | description |\n|---|---|\n")
	for _, p := range lib {
		if pages[p.Name+".md"], err = page(&p); err != nil {
			return nil, fmt.Errorf("page of %s: %w", p.Name, err)
		}
		fmt.Fprintf(&index, "| [`%s`](%s.md) | %s |\n", p.Name, p.Name, cell(p.Title))
	}
	index.WriteString("\nSee [the input document](input.md) for the input of policies, and [disabled functions](functions.md) for functions that they cannot call.\n")
	pages["README.md"] = index.Bytes()
	pages["input.md"] = input()
	pages["functions.md"] = functions()
	return pages, nil
}

// page renders the page of one policy.
func page(p *compiler.Policy) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s: `%s`\n\n%s\n\n", p.Title, p.Name, p.Description)
	if p.Mutates {
		b.WriteString("The policy can change the body of a call. The response names each change.\n\n")
	}
	if err := writeParams(&b, p.Params); err != nil {
		return nil, err
	}
	if len(p.AnyOf) > 0 {
		fmt.Fprintf(&b, "\nAt least one of `%s` is required.\n", strings.Join(p.AnyOf, "`, `"))
	}
	example, err := p.ExampleYAML()
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&b, "\n```yaml\n%s```\n", example)
	return b.Bytes(), nil
}

// input renders the reference of the input document.
func input() []byte {
	var b bytes.Buffer
	b.WriteString("# The input\n\nThe document that policies receive for each call, version 1. Later releases may add members, but do not change the meaning of existing ones within a version. Policies are type-checked against its [JSON Schema](../../policies/input.schema.json). Generated from `policies/policyinput`.\n\n" +
		"| member | type | meaning |\n|---|---|---|\n")
	for _, m := range policyinput.Members() {
		switch {
		case m.Path == "spend.org" || m.Path == "spend.team":
			m.Doc += " Has the members of `input.spend.key`."
		case m.Path == "catalog.gpus.<name>.secure":
			m.Doc += " Has the members of `community`."
		case strings.HasPrefix(m.Path, "spend.org.") || strings.HasPrefix(m.Path, "spend.team.") ||
			strings.HasPrefix(m.Path, "catalog.gpus.<name>.secure."):
			continue
		}
		fmt.Fprintf(&b, "| `input.%s` | %s | %s |\n", m.Path, m.Type, cell(m.Doc))
	}
	b.WriteString("\n## Resources\n\nThe members of `input.resource.current`, `input.resource.after` and `input.resource.template.record` for all kinds of resources, " +
		"from the description of the platform's API. Each may be absent or null. Own policies that name other members, or use them with the wrong type, are rejected.\n\n<!-- not run: a list of members -->\n```text\n")
	members := policyinput.StateMembers()
	for i, m := range members {
		path, kind := m.Path, strings.ReplaceAll(strings.TrimPrefix(m.Type, "null or "), " or ", "|")
		if i+1 < len(members) && (kind == "array" && members[i+1].Path == path+"[]" || kind == "object" && strings.HasPrefix(members[i+1].Path, path+".")) {
			continue // the lines of its items or members say it
		}
		if array, ok := strings.CutSuffix(path, "[]"); ok && members[i-1].Path == array && members[i-1].Type == "array" {
			path, kind = array, "[]"+kind
		}
		fmt.Fprintf(&b, "%-34s %s\n", path, strings.TrimSuffix(kind, "|null"))
	}
	b.WriteString("```\n")
	return b.Bytes()
}

// functions renders the reference of the functions that policies cannot call.
func functions() []byte {
	var b bytes.Buffer
	b.WriteString("# Disabled functions\n\nPolicies can call all functions of Rego except these. A decision depends only on the call and on data, and its cost is bounded.\n\n" +
		"Generated from `policies/regosandbox`.\n\n| functions | reason | use instead |\n|---|---|---|\n")
	for _, group := range regosandbox.DisabledFunctions() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.Join(group.Names, "`, `"), group.Why, group.Instead)
	}
	b.WriteString("\nExceptions: `crypto.sha256`, `regex.match`, `regex.split` and `regex.is_valid` can be called.\n")
	return b.Bytes()
}

// writeParams writes the table of a policy's parameters.
func writeParams(b *bytes.Buffer, params []compiler.Param) error {
	b.WriteString("| parameter | type, default | meaning |\n|---|---|---|\n")
	for _, param := range params {
		kind := cell(typeOf(param.Schema))
		if param.Required {
			kind += ", **required**"
		}
		if d, ok := param.Schema["default"]; ok {
			text, err := json.Marshal(d)
			if err != nil {
				return err
			}
			kind += ", `" + string(text) + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", param.Name, kind, cell(param.Description))
	}
	return nil
}

// typeOf describes a parameter's schema in a few words.
func typeOf(schema map[string]any) string {
	if values, ok := schema["enum"].([]any); ok {
		return words(values)
	}
	name, _ := schema["type"].(string)
	switch name {
	case "array":
		items, _ := schema["items"].(map[string]any)
		return "list of " + typeOf(items)
	case "object":
		inner, _ := schema["additionalProperties"].(map[string]any)
		if inner == nil {
			return "map"
		}
		return "map of " + typeOf(inner)
	case "":
		return "any"
	default:
		if format, ok := schema["format"].(string); ok {
			return name + " (" + format + ")"
		}
		return name
	}
}

func words(values []any) string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = fmt.Sprint(v)
	}
	return "one of " + strings.Join(out, ", ")
}

// cell escapes text for a table cell.
func cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", "\\|")
}
