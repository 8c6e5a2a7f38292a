package strictyaml

import (
	"reflect"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// restarter is implemented by sections with the tag `reload:"restart"` where only some changes require a restart.
type restarter interface {
	// NeedsRestart reports whether replacing old with the receiver requires a restart. Both have the same type.
	NeedsRestart(old any) bool
}

// NeedRestart compares two configurations and returns the paths of the different settings that require a restart: settings with the tag
// `reload:"restart"`, and settings in a section with this tag.
func NeedRestart[T any](old, next T) []string {
	return needRestart(planOf(reflect.TypeFor[T]()), reflect.ValueOf(old), reflect.ValueOf(next), "", "")
}

func needRestart(pl *plan, old, next reflect.Value, path, reload string) []string {
	if r, ok := reflect.TypeAssert[restarter](next); ok && reload == Restart {
		if r.NeedsRestart(old.Interface()) {
			return []string{path}
		}
		return nil
	}
	switch {
	case pl.form == formStruct:
		var changed []string
		for _, f := range pl.fields {
			changed = append(changed, needRestart(f.plan, old.FieldByIndex(f.index), next.FieldByIndex(f.index),
				fault.Key(path, f.name), f.reloaded(reload))...)
		}
		return changed
	case pl.form == formPointer && !old.IsNil() && !next.IsNil():
		return needRestart(pl.elem, old.Elem(), next.Elem(), path, reload)
	case reload != Restart || same(pl, old, next):
		return nil
	}
	return []string{path}
}

// same reports whether two values are equal. It compares the values of secrets, but not their references.
func same(pl *plan, old, next reflect.Value) bool {
	if pl.form == formSecret {
		return old.Interface().(Secret).Reveal() == next.Interface().(Secret).Reveal()
	}
	return reflect.DeepEqual(old.Interface(), next.Interface())
}
