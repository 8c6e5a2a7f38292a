package strictyaml

import (
	"reflect"
	"slices"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Paths returns the paths of all settings and sections of the configuration struct v, for example orgs[].keys[].id, in the order of the
// fields. [] stands for every index of a list, and <name> for every key of a map.
func Paths(v any) []string { return paths(planOf(reflect.TypeOf(v)), "", nil) }

// paths lists the paths in the section at path. within holds the plans of the enclosing sections, so that paths stops at recursive types.
func paths(pl *plan, path string, within []*plan) []string {
	if slices.Contains(within, pl) {
		return nil
	}
	within = append(within, pl)
	switch pl.form { //nolint:exhaustive // all other types are settings themselves
	case formPointer:
		return paths(pl.elem, path, within)
	case formList:
		return paths(pl.elem, path+"[]", within)
	case formMap:
		return paths(pl.elem, path+".<name>", within)
	}
	var all []string
	for _, f := range pl.fields {
		at := fault.Key(path, f.name)
		all = append(append(all, at), paths(f.plan, at, within)...)
	}
	return all
}
