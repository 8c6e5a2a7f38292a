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

One YAML file configures a gateway. ` + "`tollgate serve -c tollgate.yaml`" + ` starts the gateway, and ` + "`tollgate check -c tollgate.yaml`" + ` reports
every fault in the file with line, column and path. ` + "`tollgate check --print-schema`" + ` prints a JSON Schema for your editor.

The maximum size is 1 MiB for this file and for each file in ` + "`orgs_files`" + `, and 64 MiB for each file in ` + "`key_files`" + `.

The gateway reloads the configuration on SIGHUP, and when one of its files changes: this file, a file in ` + "`orgs_files` or `key_files`" + `, a secret, or a
policy. If a file has a fault, the previous configuration stays in force. New values take effect immediately, unless the setting or its section is marked
*restart*. Until the restart, the log and the ` + "`restart` field of `GET /admin/status`" + ` list the changed settings.

- A *duration* has a unit: ` + "`250ms`, `1m30s`, `24h`" + `.
- A *secret* is a reference, never the value: ` + "`{env: NAME}` or `{file: PATH}`" + `.
- A default in a description applies if the setting is absent, empty or 0, unless the description states otherwise.
- In the path of a setting, ` + "`[]`" + ` stands for each entry of a list, and ` + "`<name>`" + ` for each key of a mapping. Unknown and duplicate keys are faults.
`

// docs returns the page that describes every setting, in Markdown.
func docs() string {
	var b strings.Builder
	b.WriteString(docsHead)
	single := true // the settings outside sections share a table
	all := strictyaml.Settings(settings.Default())
	same := sameSections(all)
	like, names := repeatedSettings(all, same)
	var rows []strictyaml.Setting
	for _, s := range all {
		if within(s.Path, same) || like[s.Path] != "" && len(names[s.Path]) == 0 {
			continue
		}
		if section := like[s.Path]; section != "" {
			s = strictyaml.Setting{Path: strings.Join(names[s.Path], "`, `"), Type: repeated, Doc: "same settings as in `" + section + "`", Reload: s.Reload}
			rows = append(rows, s)
			continue
		}
		if first := same[s.Path]; first != "" {
			s.Doc += "; see `" + first + "`"
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

// escape escapes what Markdown interprets in a cell of a table.
var escape = strings.NewReplacer("|", `\|`, "<", `\<`)

// repeated is the type of a row for several settings that the page describes elsewhere.
const repeated = "repeated"

// writeTable writes the settings of a section. Settings that require a restart are marked, unless their section is marked.
func writeTable(b *strings.Builder, rows []strictyaml.Setting) {
	if len(rows) == 0 {
		return
	}
	var marked []string // sections
	if !slices.ContainsFunc(rows, func(s strictyaml.Setting) bool { return s.Reload == "live" }) {
		b.WriteString("A change requires a *restart*.\n\n")
		marked = []string{""}
	}
	b.WriteString("| Setting | Meaning |\n|---|---|\n")
	for _, s := range rows {
		var notes []string
		if s.Type != repeated {
			notes = append(notes, typeOf(s))
		}
		if s.Default != "" {
			notes = append(notes, code(s.Default))
		}
		if s.Reload == "restart" && !slices.ContainsFunc(marked, func(section string) bool { return section == "" || strings.HasPrefix(s.Path, section+".") }) {
			notes = append(notes, "*restart*")
			if s.Type == "" && !slices.ContainsFunc(rows, func(t strictyaml.Setting) bool { return t.Reload == "live" && strings.HasPrefix(t.Path, s.Path+".") }) {
				marked = append(marked, s.Path)
			}
		}
		if len(notes) > 0 {
			notes = append([]string{""}, strings.Join(notes, ", "))
		}
		fmt.Fprintf(b, "| `%s`%s | %s |\n", s.Path, strings.Join(notes, "<br>"), escape.Replace(s.Doc))
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

// repeatedSettings returns the settings that repeat the settings of a section with a shorter path, if a section has several of them. like maps
// the path of each to that section. names maps the first path of each section to the row's names: the path itself, and the last elements of
// the others.
func repeatedSettings(all []strictyaml.Setting, same map[string]string) (like map[string]string, names map[string][]string) {
	first := make(map[string]string) // sections by content of a setting
	for _, s := range slices.SortedStableFunc(slices.Values(all), func(a, b strictyaml.Setting) int { return len(a.Path) - len(b.Path) }) {
		section, _ := split(s.Path)
		if key := content(s); first[key] == "" && !within(s.Path, same) {
			first[key] = section
		}
	}
	groups := make(map[string][]string) // paths by both sections
	for _, s := range all {
		section, _ := split(s.Path)
		if at := first[content(s)]; at != "" && at != section && section != "" && !within(s.Path, same) {
			groups[section+" "+at] = append(groups[section+" "+at], s.Path)
		}
	}
	like, names = make(map[string]string), make(map[string][]string)
	for group, paths := range groups {
		if len(paths) < 2 {
			continue
		}
		_, at, _ := strings.Cut(group, " ")
		for i, path := range paths {
			like[path] = at
			_, name := split(path)
			if i == 0 {
				name = path
			}
			names[paths[0]] = append(names[paths[0]], name)
		}
	}
	return like, names
}

// content is all that the page says about a setting, and its name.
func content(s strictyaml.Setting) string {
	_, name := split(s.Path)
	return fmt.Sprintln(name, typeOf(s), s.Default, s.Doc)
}

// split divides a path into the path of the section and the name of the setting.
func split(path string) (section, name string) {
	at := strings.LastIndexByte(path, '.')
	return path[:max(at, 0)], path[at+1:]
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
