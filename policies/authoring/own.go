package authoring

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/policies/compiler"
)

// OwnPolicies renders the reference of an organisation's own policies from their METADATA annotations: one Markdown page per
// policy, named <policy>.md, and an index in README.md. A policy without METADATA gets a page with the information in the Rego
// itself.
func OwnPolicies(w *compiler.Workspace) (map[string][]byte, error) {
	own, err := w.Policies()
	if err != nil {
		return nil, err
	}
	pages := map[string][]byte{}
	var index bytes.Buffer
	index.WriteString("# Own policies\n\nGenerated from Rego.\n\n| policy | description | rules |\n|---|---|---|\n")
	for _, p := range own {
		if len(p.Rules) == 0 {
			continue
		}
		pages[p.Name+".md"] = ownPage(&p)
		fmt.Fprintf(&index, "| [`%s`](%s.md) | %s | %s |\n", p.Name, p.Name, cell(title(&p)), strings.Join(p.Rules, ", "))
	}
	pages["README.md"] = index.Bytes()
	return pages, nil
}

func title(p *compiler.OwnPolicy) string { return cmp.Or(p.Title, p.Name) }

// ownPage renders the page of one policy.
func ownPage(p *compiler.OwnPolicy) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\nPolicy `%s`, generated from `%s`.\n\n", title(p), p.Name, strings.Join(p.Files, "`, `"))
	if p.Description != "" {
		b.WriteString(p.Description + "\n\n")
	}
	fmt.Fprintf(&b, "Defines the rules `%s`.\n", strings.Join(p.Rules, "`, `"))
	if slices.Contains(p.Rules, "mutate") || slices.Contains(p.Rules, "mutations") {
		b.WriteString("\nThe policy can change the body of a call. The response names each change.\n")
	}
	if len(p.Params) > 0 {
		b.WriteByte('\n')
		writeParams(&b, p.Params)
	}
	return b.Bytes()
}
