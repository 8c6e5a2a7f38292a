package config_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tollgate-dev/tollgate/config"
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

// pageSetting is one key of a configuration. Its type is "" for a section, whose settings follow in a list.
type pageSetting struct {
	Path, Doc, Unit, Type, Default, Reload string
	Required                               bool
}

// allSettings lists the settings in the order of their fields: as the JSON Schema says, with the unit and the reload tag of the field.
func allSettings() []pageSetting {
	text, err := config.Schema()
	var schema yaml.Node
	if err = errors.Join(err, yaml.Unmarshal(text, &schema)); err != nil {
		panic(err)
	}
	tags := make(map[string]reflect.StructTag)
	tagsBelow(reflect.TypeFor[settings.Config](), "", tags)
	return settingsBelow(schema.Content[0], "", "", tags)
}

// tagsBelow adds the tags of the fields of a type, by path.
func tagsBelow(t reflect.Type, path string, tags map[string]reflect.StructTag) {
	switch t.Kind() { //nolint:exhaustive // other types have no fields
	case reflect.Pointer:
		tagsBelow(t.Elem(), path, tags)
	case reflect.Slice:
		tagsBelow(t.Elem(), path+"[]", tags)
	case reflect.Map:
		tagsBelow(t.Elem(), path+".<name>", tags)
	case reflect.Struct:
		for f := range t.Fields() {
			name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			at := strings.TrimPrefix(path+"."+name, ".")
			switch {
			case strings.Contains(options, "inline"):
				tagsBelow(f.Type, path, tags)
			case name != "" && name != "-":
				tags[at] = f.Tag
				tagsBelow(f.Type, at, tags)
			}
		}
	}
}

// settingsBelow lists the settings in a schema.
func settingsBelow(schema *yaml.Node, path, reload string, tags map[string]reflect.StructTag) (all []pageSetting) {
	if items := member(schema, "items"); items.Kind != 0 {
		return settingsBelow(items, path+"[]", reload, tags)
	}
	if values := member(schema, "additionalProperties"); values.Kind == yaml.MappingNode {
		return settingsBelow(values, path+".<name>", reload, tags)
	}
	properties := member(schema, "properties").Content
	if schemaType(schema) == "secret" {
		return nil
	}
	var required []string
	_ = member(schema, "required").Decode(&required) // absent if there are none
	for i := 0; i < len(properties); i += 2 {
		name, of := properties[i].Value, properties[i+1]
		s := pageSetting{
			Path: strings.TrimPrefix(path+"."+name, "."), Doc: member(of, "description").Value, Type: schemaType(of),
			Required: slices.Contains(required, name),
		}
		s.Unit, s.Reload = tags[s.Path].Get("unit"), cmp.Or(tags[s.Path].Get("reload"), reload)
		if def := member(of, "default"); def.Kind != 0 {
			var value any
			err := def.Decode(&value)
			text, failed := json.Marshal(value)
			if err = errors.Join(err, failed); err != nil {
				panic(err)
			}
			s.Default = strings.Trim(string(text), `"`)
		}
		all = append(append(all, s), settingsBelow(of, s.Path, s.Reload, tags)...)
	}
	return all
}

// schemaType names the type of a schema for readers. It returns "" for a section.
func schemaType(schema *yaml.Node) string {
	var values []string
	if err := member(schema, "enum").Decode(&values); err == nil && values != nil {
		return strings.Join(values, ", ")
	}
	extra := member(schema, "additionalProperties")
	switch kind := member(schema, "type").Value; {
	case member(schema, "anyOf").Kind != 0:
		return "secret or string"
	case kind == "":
		return "any"
	case kind == "string" && member(schema, "pattern").Kind != 0:
		return "duration"
	case kind == "array":
		return strings.TrimSuffix("list of "+schemaType(member(schema, "items")), " of ")
	case kind == "object" && extra.Kind == yaml.MappingNode:
		return strings.TrimSuffix("mapping to "+schemaType(extra), " to ")
	case kind == "object" && member(schema, "maxProperties").Kind != 0:
		return "secret"
	case kind == "object":
		return ""
	default:
		return kind
	}
}

// member returns the member of a JSON object, or an empty node.
func member(object *yaml.Node, name string) *yaml.Node {
	for i := 0; i < len(object.Content); i += 2 {
		if object.Content[i].Value == name {
			return object.Content[i+1]
		}
	}
	return new(yaml.Node)
}

// docs returns the page that describes every setting, in Markdown.
func docs() string {
	var b strings.Builder
	b.WriteString(docsHead)
	single := true // the settings outside sections share a table
	all := allSettings()
	same := sameSections(all)
	like, names := repeatedSettings(all, same)
	var rows []pageSetting
	for _, s := range all {
		if within(s.Path, same) || like[s.Path] != "" && len(names[s.Path]) == 0 {
			continue
		}
		if section := like[s.Path]; section != "" {
			s = pageSetting{Path: strings.Join(names[s.Path], "`, `"), Type: repeated, Doc: "same settings as in `" + section + "`", Reload: s.Reload}
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
func writeTable(b *strings.Builder, rows []pageSetting) {
	if len(rows) == 0 {
		return
	}
	var marked []string // sections
	if !slices.ContainsFunc(rows, func(s pageSetting) bool { return s.Reload == "live" }) {
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
			if s.Type == "" && !slices.ContainsFunc(rows, func(t pageSetting) bool { return t.Reload == "live" && strings.HasPrefix(t.Path, s.Path+".") }) {
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
func sameSections(all []pageSetting) map[string]string {
	first, same := make(map[string]string), make(map[string]string)
	for _, byLength := range slices.SortedStableFunc(slices.Values(all), func(a, b pageSetting) int { return len(a.Path) - len(b.Path) }) {
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
func repeatedSettings(all []pageSetting, same map[string]string) (like map[string]string, names map[string][]string) {
	first := make(map[string]string) // sections by content of a setting
	for _, s := range slices.SortedStableFunc(slices.Values(all), func(a, b pageSetting) int { return len(a.Path) - len(b.Path) }) {
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
func content(s pageSetting) string {
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

func typeOf(s pageSetting) string {
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
