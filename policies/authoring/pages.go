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
func Library() map[string][]byte {
	pages := map[string][]byte{}
	var index bytes.Buffer
	index.WriteString("# Built-in policies\n\nTo enable these policies, see [policies](../policies.md). Generated from `policies/rego`.\n\n")
	for _, p := range compiler.Library() {
		pages[p.Name+".md"] = page(&p)
		fmt.Fprintf(&index, "- [`%s`](%s.md): %s\n", p.Name, p.Name, cell(p.Title))
	}
	index.WriteString("\nSee also [the input document](input.md) of policies, and [disabled functions](functions.md).\n")
	pages["README.md"] = index.Bytes()
	pages["input.md"] = input()
	pages["functions.md"] = functions()
	return pages
}

// page renders the page of one policy.
func page(p *compiler.Policy) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s: `%s`\n\n%s\n\n", p.Title, p.Name, p.Description)
	if p.Mutates {
		b.WriteString("The policy can change request bodies; the response lists each change.\n\n")
	}
	writeParams(&b, p.Params)
	if len(p.AnyOf) > 0 {
		fmt.Fprintf(&b, "\nAt least one of `%s` is required.\n", strings.Join(p.AnyOf, "`, `"))
	}
	fmt.Fprintf(&b, "\n```yaml\n%s```\n", p.ExampleYAML())
	return b.Bytes()
}

// input renders the reference of the input document.
func input() []byte {
	var b bytes.Buffer
	b.WriteString("# The input\n\nThis page describes version 1 of the document that policies receive for each call. Later releases may add fields, but do not change the meaning of existing fields within a version. Policies are type-checked against the [JSON Schema](../../policies/input.schema.json). Generated from `policies/policyinput`.\n\n" +
		"| field, type | meaning |\n|---|---|\n")
	var rows []policyinput.Member
	first := map[string]int{}
	for _, m := range policyinput.Members() {
		switch {
		case m.Path == "spend.org" || m.Path == "spend.team":
			m.Doc += " Has the fields of `input.spend.key`."
		case m.Path == "catalog.gpus.<name>.secure":
			m.Doc += " Has the fields of `community`."
		case strings.HasPrefix(m.Path, "spend.org.") || strings.HasPrefix(m.Path, "spend.team.") ||
			strings.HasPrefix(m.Path, "catalog.gpus.<name>.secure."):
			continue
		}
		at := strings.LastIndexByte(m.Path, '.')
		key := m.Path[:max(at, 0)] + "|" + m.Type + "|" + m.Doc
		if i, ok := first[key]; ok && at > 0 { // one row for members of an object with the same description
			rows[i].Path += "`, `" + m.Path[at+1:]
			continue
		}
		first[key] = len(rows)
		rows = append(rows, m)
	}
	for _, m := range rows {
		fmt.Fprintf(&b, "| `input.%s`<br>%s | %s |\n", m.Path, m.Type, cell(m.Doc))
	}
	b.WriteString("\n## Resources\n\nThe fields of `input.resource.current`, `input.resource.after` and `input.resource.template.record` for all kinds of resources. " +
		"Each field may be absent or null. The gateway rejects custom policies that use other fields or wrong types.\n\n<!-- not run: a list of members -->\n```text\n")
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
	b.WriteString("# Disabled functions\n\nPolicies can call all functions of Rego except the following. " +
		"Generated from `policies/regosandbox`.\n\n| functions | reason | use instead |\n|---|---|---|\n")
	for _, group := range regosandbox.DisabledFunctions() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.Join(group.Names, "`, `"), group.Why, group.Instead)
	}
	b.WriteString("\nExceptions: `crypto.sha256`, `regex.match`, `regex.split` and `regex.is_valid` can be called.\n")
	return b.Bytes()
}

// writeParams writes the table of a policy's parameters.
func writeParams(b *bytes.Buffer, params []compiler.Param) {
	b.WriteString("| parameter, type, default | meaning |\n|---|---|\n")
	for _, param := range params {
		kind := cell(param.TypeName())
		if param.Required {
			kind += ", **required**"
		}
		if d, ok := param.Schema["default"]; ok {
			text, _ := json.Marshal(d) // decoded JSON
			kind += ", `" + string(text) + "`"
		}
		fmt.Fprintf(b, "| `%s`<br>%s | %s |\n", param.Name, kind, cell(param.Description))
	}
}

// cell escapes text for a table cell.
func cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", "\\|")
}
