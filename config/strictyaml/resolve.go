package strictyaml

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// ResolveSecrets resolves every [Secret] in the decoded struct that v points to, including secrets in lists, maps and pointers. The error
// joins a [fault.Error] for each secret that cannot be resolved; all others are resolved.
func ResolveSecrets(v any, env func(string) (string, bool), readFile func(string) ([]byte, error)) error {
	return Each(v, func(s *Secret) error { return s.Resolve(env, readFile) })
}

// Each calls do for every setting of type T in the decoded struct that v points to, including settings in lists, maps and pointers. do may
// modify the setting. The error joins a [fault.Error] for each error of do.
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

// walk calls do for every value of the wanted type in v. The values are addressable. Elements of maps are passed as copies and stored
// afterwards.
func walk(pl *plan, v reflect.Value, path string, wanted reflect.Type, do func(path string, v reflect.Value)) {
	switch {
	case pl.typ == wanted:
		do(path, v)
		return
	case !pl.parts[wanted]: // skips lists of thousands of keys
		return
	}
	switch pl.form { //nolint:exhaustive // other types have no parts
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
