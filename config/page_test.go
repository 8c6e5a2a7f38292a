package config_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// docsHead begins the page that describes the settings.
const docsHead = `# Configuration

One YAML file configures a gateway. ` + "`tollgate serve -c tollgate.yaml`" + ` reads it, and ` + "`tollgate check -c tollgate.yaml`" + ` reports every
fault with line, column and path. This page lists every setting, with an example for each section. It is generated from the code, like the JSON Schema for your
editor that ` + "`tollgate check --print-schema`" + ` prints.

The file may have at most 1 MiB, and so may each file of ` + "`orgs_files`" + `, which defines one organisation. A file of ` + "`key_files`" + ` may have at most 64 MiB.

The gateway reloads the file on SIGHUP, and when it changes or a file of ` + "`orgs_files`, of `key_files`" + `, of a secret or of policies. A file with a fault never
replaces the configuration in force. A new value takes effect at once, unless the setting or its section says *restart*; until then the log names it, as does
` + "`restart` of `GET /admin/status`" + `.

- A *duration* has a unit: ` + "`250ms`, `1m30s`, `24h`" + `.
- A *secret* is a reference, never the value itself: ` + "`{env: NAME}` or `{file: PATH}`" + `.
- In paths, ` + "`[]`" + ` stands for each entry of a list, and ` + "`<name>`" + ` for each key of a mapping. Unknown and duplicate keys are faults.
`

// docs returns the page that describes every setting, in Markdown.
func docs() string {
	var b strings.Builder
	b.WriteString(docsHead)
	single := true // the settings outside sections share a table
	all := strictyaml.Settings(settings.Default())
	same := sameSections(all)
	var rows []strictyaml.Setting
	for _, s := range all {
		if within(s.Path, same) {
			continue
		}
		if first := same[s.Path]; first != "" {
			s.Doc += "; same settings as `" + first + "`"
		}
		if section := s.Type == "" || s.Type == "list"; section && !strings.Contains(s.Path, ".") {
			writeTable(&b, rows)
			rows = nil
			fmt.Fprintf(&b, "\n## %s\n\n%s. %s", s.Path, upper(s.Doc), examples()[s.Path])
			single = false
			continue
		} else if !section && !strings.Contains(s.Path, ".") && !single || single && s.Path == "listen" {
			writeTable(&b, rows)
			rows = nil
			fmt.Fprintf(&b, "\n## %s\n\n%s", s.Path, examples()[s.Path])
			single = true
		}
		rows = append(rows, s)
	}
	writeTable(&b, rows)
	return b.String()
}

// writeTable writes the settings of a section. Those that require a restart are marked, unless all do.
func writeTable(b *strings.Builder, rows []strictyaml.Setting) {
	if len(rows) == 0 {
		return
	}
	restart := !slices.ContainsFunc(rows, func(s strictyaml.Setting) bool { return s.Reload == "live" })
	if restart {
		b.WriteString("A change requires a *restart*.\n\n")
	}
	b.WriteString("| Setting | Type, default | Meaning |\n|---|---|---|\n")
	for _, s := range rows {
		t := typeOf(s)
		if s.Default != "" {
			t += ", " + code(s.Default)
		}
		if s.Reload == "restart" && !restart {
			t += ", *restart*"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", s.Path, t, strings.ReplaceAll(s.Doc, "|", `\|`))
	}
}

// sameSections maps sections to a section with a shorter path that has the same name and settings: the page lists these once.
func sameSections(all []strictyaml.Setting) map[string]string {
	first, same := make(map[string]string), make(map[string]string)
	for _, byLength := range slices.SortedStableFunc(slices.Values(all), func(a, b strictyaml.Setting) int { return len(a.Path) - len(b.Path) }) {
		content := ""
		for _, s := range all {
			if below, ok := strings.CutPrefix(s.Path, byLength.Path); ok && below != "" && strings.ContainsAny(below[:1], ".[<") {
				content += fmt.Sprintln(below, typeOf(s), s.Default, s.Doc)
			}
		}
		name := byLength.Path[strings.LastIndexByte(byLength.Path, '.')+1:]
		if content == "" {
			continue
		}
		if at, ok := first[name+content]; ok {
			same[byLength.Path] = at
		} else {
			first[name+content] = byLength.Path
		}
	}
	return same
}

// within reports whether a setting is below a section that the page lists elsewhere.
func within(path string, same map[string]string) bool {
	for section := range same {
		if below, ok := strings.CutPrefix(path, section); ok && below != "" && strings.ContainsAny(below[:1], ".[<") {
			return true
		}
	}
	return false
}

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
