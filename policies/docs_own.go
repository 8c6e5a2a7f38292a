package policies

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Docs renders the reference of an organisation's own policies from their
// METADATA: a Markdown page per policy, named <policy>.md, and README.md that
// lists them. A policy without METADATA gets a page all the same, which says
// what the Rego itself says.
func (w *Workspace) Docs() (map[string][]byte, error) {
	own, err := w.Policies()
	if err != nil {
		return nil, err
	}
	pages := map[string][]byte{}
	var index bytes.Buffer
	index.WriteString("# Own policies\n\nGenerated from Rego.\n\n| policy | what it does | answers |\n|---|---|---|\n")
	for _, p := range own {
		if len(p.Rules) == 0 {
			continue
		}
		page, err := p.page()
		if err != nil {
			return nil, fmt.Errorf("page of %s: %w", p.Name, err)
		}
		pages[p.Name+".md"] = page
		fmt.Fprintf(&index, "| [`%s`](%s.md) | %s | %s |\n", p.Name, p.Name, cell(p.title()), strings.Join(p.Rules, ", "))
	}
	pages["README.md"] = index.Bytes()
	return pages, nil
}

func (p *OwnPolicy) title() string {
	if p.Title != "" {
		return p.Title
	}
	return p.Name
}

// page is the reference of one own policy.
func (p *OwnPolicy) page() ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\nPolicy `%s`, generated from `%s`.\n\n", p.title(), p.Name, strings.Join(p.Files, "`, `"))
	if p.Description != "" {
		b.WriteString(p.Description + "\n\n")
	}
	fmt.Fprintf(&b, "Answers with `%s`.\n", strings.Join(p.Rules, "`, `"))
	for _, rule := range p.Rules {
		if rule == "mutate" || rule == "mutations" {
			b.WriteString("\nIt may change the body of a call; the caller is told.\n")
			break
		}
	}
	if len(p.Params) == 0 {
		return b.Bytes(), nil
	}
	b.WriteByte('\n')
	if err := writeParams(&b, p.Params); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// writeParams writes the table of a policy's parameters.
func writeParams(b *bytes.Buffer, params []Param) error {
	b.WriteString("## Parameters\n\n| parameter | type | required | default | meaning |\n|---|---|---|---|---|\n")
	for _, param := range params {
		required, def := "", ""
		if param.Required {
			required = "yes"
		}
		if d, ok := param.Schema["default"]; ok {
			text, err := json.Marshal(d)
			if err != nil {
				return err
			}
			def = "`" + string(text) + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", param.Name, cell(typeOf(param.Schema)), required, def, cell(param.Description))
	}
	return nil
}
