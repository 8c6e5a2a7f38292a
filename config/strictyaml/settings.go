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
	// Path is the full path, for example orgs[].keys[].id. [] stands for every index of a list, and <name> for every key of a map.
	Path string
	// Doc is the description. Unit is the unit of a number, or "".
	Doc, Unit string
	// Type describes how to write the value. It is "" for a section; the settings of the section follow in the list.
	Type string
	// Default is the default value in the form used in a file. It is "" without a default.
	Default string
	// Required is true if the setting cannot be omitted.
	Required bool
	// Reload is Live or Restart, from the reload tag of the setting or of its section. It is "" without a tag.
	Reload string
}

// Settings lists the settings of the configuration struct v in the order of its fields. v holds the defaults.
func Settings(v any) []Setting {
	value := reflect.ValueOf(v)
	return settings(planOf(value.Type()), value, "", "", nil)
}

// settings lists the settings in the section at path. within holds the plans of the enclosing sections, so that settings stops at recursive
// types.
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
