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
	return EachSecret(v, func(s *Secret) error { return s.Resolve(env, readFile) })
}

// EachSecret calls do for every [Secret] within the decoded struct that v points to. The error joins a [fault.Error] for each error of
// do.
func EachSecret(v any, do func(*Secret) error) error { return Each(v, do) }

// Each calls do for every setting of type T within the decoded struct that v points to, also in lists, maps and behind pointers. do may
// change the setting. The error joins a [fault.Error] for each error of do.
func Each[T any](v any, do func(*T) error) error {
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		panic(fmt.Sprintf("strictyaml: settings of %T, want a pointer", v))
	}
	// A value is addressable: fields and elements are, and the elements of maps are walked as copies.
	w := &walker{wanted: reflect.TypeFor[T](), do: func(v reflect.Value) error { return do(v.Addr().Interface().(*T)) }}
	w.walk(planOf(target.Type().Elem()), target.Elem(), "")
	return errors.Join(w.errs...)
}

type walker struct {
	wanted reflect.Type
	do     func(reflect.Value) error
	errs   []error
}

func (w *walker) walk(pl *plan, v reflect.Value, path string) {
	if !pl.has(w.wanted) { // lists of ten thousand keys are passed over
		return
	}
	if pl.typ == w.wanted {
		if err := w.do(v); err != nil {
			w.errs = append(w.errs, fault.At(path, err))
		}
		return
	}
	switch pl.form { //nolint:exhaustive // the others have no parts
	case formStruct:
		for _, f := range pl.fields {
			w.walk(f.plan, v.FieldByIndex(f.index), fault.Key(path, f.name))
		}
	case formPointer:
		if !v.IsNil() {
			w.walk(pl.elem, v.Elem(), path)
		}
	case formList:
		for i := range v.Len() {
			w.walk(pl.elem, v.Index(i), fault.Index(path, i))
		}
	case formMap:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		for _, key := range keys {
			elem := reflect.New(pl.elem.typ).Elem()
			elem.Set(v.MapIndex(key))
			w.walk(pl.elem, elem, fault.Key(path, fmt.Sprint(key)))
			v.SetMapIndex(key, elem)
		}
	}
}
