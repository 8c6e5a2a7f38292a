package strictyaml

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// ResolveSecrets resolves every [Secret] within the decoded struct that v points to, also in lists, maps and behind pointers. The error
// joins a [fault.Error] for each that cannot be resolved; the others are resolved all the same.
func ResolveSecrets(v any, env func(string) (string, bool), readFile func(string) ([]byte, error)) error {
	return Each(v, func(s *Secret) error { return s.Resolve(env, readFile) })
}

// Each calls do for every setting of type T within the decoded struct that v points to, also in lists, maps and behind pointers. do may
// change the setting. The error joins a [fault.Error] for each error of do.
func Each[T any](v any, do func(*T) error) error {
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		panic(fmt.Sprintf("strictyaml: settings of %T, want a pointer", v))
	}
	var errs []error
	walk(planOf(target.Type().Elem()), target.Elem(), "", reflect.TypeFor[T](), func(path string, v reflect.Value) {
		if err := do(v.Addr().Interface().(*T)); err != nil {
			errs = append(errs, fault.At(path, err))
		}
	})
	return errors.Join(errs...)
}

// walk calls do with every value of the wanted type within v. The values are addressable: fields and elements are, and the elements of
// maps are walked as copies.
func walk(pl *plan, v reflect.Value, path string, wanted reflect.Type, do func(path string, v reflect.Value)) {
	switch {
	case pl.typ == wanted:
		do(path, v)
		return
	case !pl.parts[wanted]: // lists of ten thousand keys are passed over
		return
	}
	switch pl.form { //nolint:exhaustive // the others have no parts
	case formStruct:
		for _, f := range pl.fields {
			walk(f.plan, v.FieldByIndex(f.index), fault.Key(path, f.name), wanted, do)
		}
	case formPointer:
		if !v.IsNil() {
			walk(pl.elem, v.Elem(), path, wanted, do)
		}
	case formList:
		for i := range v.Len() {
			walk(pl.elem, v.Index(i), fault.Index(path, i), wanted, do)
		}
	case formMap:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		for _, key := range keys {
			elem := reflect.New(pl.elem.typ).Elem()
			elem.Set(v.MapIndex(key))
			walk(pl.elem, elem, fault.Key(path, fmt.Sprint(key)), wanted, do)
			v.SetMapIndex(key, elem)
		}
	}
}
