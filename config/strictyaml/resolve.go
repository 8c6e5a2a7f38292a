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
func EachSecret(v any, do func(*Secret) error) error {
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		panic(fmt.Sprintf("strictyaml: secrets of %T, want a pointer", v))
	}
	r := &resolver{resolve: do}
	r.walk(planOf(target.Type().Elem()), target.Elem(), "")
	return errors.Join(r.errs...)
}

type resolver struct {
	resolve func(*Secret) error
	errs    []error
}

func (r *resolver) walk(pl *plan, v reflect.Value, path string) {
	switch pl.form { //nolint:exhaustive // the others hold no secrets
	case formSecret:
		// v is addressable: fields and elements are, and the elements of maps are walked as copies.
		if err := r.resolve(v.Addr().Interface().(*Secret)); err != nil {
			r.errs = append(r.errs, fault.At(path, err))
		}
	case formStruct:
		for _, f := range pl.fields {
			r.walk(f.plan, v.FieldByIndex(f.index), fault.Key(path, f.name))
		}
	case formPointer:
		if !v.IsNil() {
			r.walk(pl.elem, v.Elem(), path)
		}
	case formList:
		for i := range v.Len() {
			r.walk(pl.elem, v.Index(i), fault.Index(path, i))
		}
	case formMap:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		for _, key := range keys {
			elem := reflect.New(pl.elem.typ).Elem()
			elem.Set(v.MapIndex(key))
			r.walk(pl.elem, elem, fault.Key(path, fmt.Sprint(key)))
			v.SetMapIndex(key, elem)
		}
	}
}
