package strictyaml

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Each calls do with a pointer to every setting of type T in the decoded struct that v points to, including settings in lists, maps and
// pointers. The function do can modify the setting. Each returns the errors of do joined, each with the path of its setting as a
// [fault.Error].
func Each[T any](v any, do func(*T) error) error {
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		panic(fmt.Sprintf("strictyaml: settings of %T, want a pointer", v))
	}
	return walk(planOf(target.Type().Elem()), target.Elem(), reflect.TypeFor[T](), func(v reflect.Value) error {
		return do(v.Addr().Interface().(*T))
	})
}

// walk calls do for every value of the wanted type in v, and adds paths to the errors that do returns. The values are addressable: walk
// passes a copy of a map element and stores the copy in the map afterwards.
func walk(pl *plan, v reflect.Value, wanted reflect.Type, do func(v reflect.Value) error) error {
	switch {
	case pl.typ == wanted:
		return do(v)
	case !pl.parts[wanted]: // skips lists of thousands of keys
		return nil
	}
	var errs []error
	switch pl.form { //nolint:exhaustive // other types have no parts
	case formStruct:
		for _, f := range pl.fields {
			if err := walk(f.plan, v.FieldByIndex(f.index), wanted, do); err != nil {
				errs = append(errs, fault.At(fault.Key("", f.name), err))
			}
		}
	case formPointer:
		if !v.IsNil() {
			return walk(pl.elem, v.Elem(), wanted, do)
		}
	case formList:
		for i := range v.Len() {
			if err := walk(pl.elem, v.Index(i), wanted, do); err != nil {
				errs = append(errs, fault.At(fault.Index("", i), err))
			}
		}
	case formMap:
		for _, key := range sortedKeys(v) {
			elem := reflect.New(pl.elem.typ).Elem()
			elem.Set(v.MapIndex(key))
			if err := walk(pl.elem, elem, wanted, do); err != nil {
				errs = append(errs, fault.At(fault.Key("", fmt.Sprint(key)), err))
			}
			v.SetMapIndex(key, elem)
		}
	}
	return errors.Join(errs...)
}

// sortedKeys returns the keys of a map, sorted by their text.
func sortedKeys(v reflect.Value) []reflect.Value {
	return slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}
