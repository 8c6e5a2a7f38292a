package strictyaml

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Setting describes one key of a configuration, as given by the tags of its field.
type Setting struct {
	// Path is the full path. [] stands for each entry of a list and <name> for each key of a map: orgs[].keys[].id.
	Path string
	// Doc is the description. Unit is the unit of a number, or "".
	Doc, Unit string
	// Type describes the written form. It is "" for a section, whose settings follow.
	Type string
	// Default is the default as written in a file, or "".
	Default string
	// Required is true if the setting cannot be omitted.
	Required bool
	// Reload is Live or Restart, from the tag of the setting or its section, or "" without a tag.
	Reload string
}

// Settings lists the settings of the configuration struct v in the order of its fields. v holds the defaults.
func Settings(v any) []Setting {
	value := reflect.ValueOf(v)
	return settings(planOf(value.Type()), value, "", "", nil)
}

// settings lists the settings below path. within holds the enclosing plans, to stop at recursive types.
func settings(pl *plan, v reflect.Value, path, reload string, within []*plan) []Setting {
	if slices.Contains(within, pl) {
		return nil
	}
	within = append(within, pl)
	switch pl.form { //nolint:exhaustive // all other types are settings themselves
	case formPointer:
		elem := pl.elem.zero()
		if !v.IsNil() {
			elem = v.Elem()
		}
		return settings(pl.elem, elem, path, reload, within)
	case formList:
		return settings(pl.elem, pl.elem.zero(), path+"[]", reload, within)
	case formMap:
		return settings(pl.elem, pl.elem.zero(), path+".<name>", reload, within)
	case formStruct:
		var all []Setting
		for _, f := range pl.fields {
			field := v.FieldByIndex(f.index)
			s := Setting{
				Path: fault.Key(path, f.name), Doc: f.doc, Unit: f.unit, Type: f.plan.name(), Required: f.required, Reload: f.reloaded(reload),
			}
			if path != "" && strings.HasSuffix(path, ">") {
				s.Path = path + "." + f.name
			}
			if def, ok := written(f.plan, field); ok && s.Type != "" {
				text, err := json.Marshal(def)
				if err == nil {
					s.Default = strings.Trim(string(text), `"`)
				}
			}
			all = append(append(all, s), settings(f.plan, field, s.Path, s.Reload, within)...)
		}
		return all
	}
	return nil
}

// name describes the written form of the type, or returns "" for a section.
func (pl *plan) name() string {
	switch pl.form {
	case formStruct:
		return ""
	case formPointer:
		return pl.elem.name()
	case formBool:
		return "boolean"
	case formInt, formUint:
		return "integer"
	case formFloat, formDecimal:
		return "number"
	case formDuration:
		return "duration"
	case formSecret:
		if pl.plain {
			return "secret or string"
		}
		return "secret"
	case formAny:
		return "any"
	case formList:
		if name := pl.elem.name(); name != "" {
			return "list of " + name
		}
		return "list"
	case formMap:
		if name := pl.elem.name(); name != "" {
			return "mapping to " + name
		}
		return "mapping"
	case formString, formText:
	}
	if pl.values != nil {
		return strings.Join(pl.values, ", ")
	}
	return "string"
}
