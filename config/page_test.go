package config_test

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// docsHead begins the page that describes the settings.
const docsHead = `# Configuration

The gateway is configured by one YAML file. ` + "`tollgate serve -c tollgate.yaml`" + ` reads it, and ` + "`tollgate check -c tollgate.yaml`" + ` reports every fault
with its line, column and path. This page is generated from the code and lists all settings. For your editor,
` + "`tollgate check --print-schema`" + ` prints a JSON Schema.

The file may have at most 1 MiB, and so may each file of ` + "`orgs_files`" + `, which defines one organisation. A file of ` + "`key_files`" + ` may have at most 64 MiB.

The gateway reloads the configuration on SIGHUP, and when the file or one of its inputs changes: files of ` + "`orgs_files` and `key_files`" + `, files of secrets, and
policies. A configuration with a fault never replaces the one in force. **Reload** shows when a new value takes effect: *live* settings at once, all
others after a *restart*. Until the restart, the log and ` + "`GET /admin/status` (`restart`)" + ` list the changed settings.

- A *duration* has a unit: ` + "`250ms`, `1m30s`, `24h`" + `.
- A *secret* is a reference, never the value itself: ` + "`{env: NAME}` or `{file: PATH}`" + `.
- In paths, ` + "`[]`" + ` stands for each entry of a list, and ` + "`<name>`" + ` for each key of a mapping. Unknown and duplicate keys are faults.
`

// docs returns the page that describes every setting, in Markdown.
func docs() string {
	var b strings.Builder
	b.WriteString(docsHead)
	single := true // the settings outside sections share a table
	for _, s := range strictyaml.Settings(settings.Default()) {
		if section := s.Type == "" || s.Type == "list"; section && !strings.Contains(s.Path, ".") {
			fmt.Fprintf(&b, "\n## %s\n\n%s. %s%s", s.Path, upper(s.Doc), examples()[s.Path], docsTable)
			single = false
			continue
		} else if !section && !strings.Contains(s.Path, ".") && !single || single && s.Path == "listen" {
			fmt.Fprintf(&b, "\n## %s\n\n%s%s", s.Path, examples()[s.Path], docsTable)
			single = true
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", s.Path, typeOf(s), code(s.Default), s.Reload, strings.ReplaceAll(s.Doc, "|", `\|`))
	}
	return b.String()
}

const docsTable = "| Setting | Type | Default | Reload | Meaning |\n|---|---|---|---|---|\n"

func typeOf(s strictyaml.Setting) string {
	t := cmp.Or(s.Type, "section")
	if s.Unit != "" {
		t += " (" + s.Unit + ")"
	}
	if s.Required {
		t += ", **required**"
	}
	return t
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
