package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
)

// plain is the view of an answer that has no other: a table for each list of its members, and one of its other members.
func plain(t reflect.Type) view {
	return func(text []byte, _ asked) (page, error) {
		if t == nil {
			return page{said: []string{"done"}}, nil
		}
		v := reflect.New(t)
		if err := json.Unmarshal(text, v.Interface()); err != nil {
			return page{}, err
		}
		v = reflect.Indirect(v)
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		return plainPage(v), nil
	}
}

func plainPage(v reflect.Value) (p page) {
	members := sheet{{"member", "value"}}
	for _, f := range reflect.VisibleFields(v.Type()) {
		value := v.FieldByIndex(f.Index)
		switch {
		case f.Anonymous:
		case value.Kind() == reflect.Slice && value.Type().Elem().Kind() == reflect.Struct:
			p.sheets = append(p.sheets, plainSheet(value))
		default:
			members.add(jsonName(&f), cell(value))
		}
	}
	if len(members) > 1 {
		p.sheets = append([]sheet{members}, p.sheets...)
	}
	return p
}

// plainSheet has a row for each item of a list, and a column for each of their members.
func plainSheet(list reflect.Value) sheet {
	s := sheet{{}}
	fields := reflect.VisibleFields(list.Type().Elem())
	fields = slices.DeleteFunc(fields, func(f reflect.StructField) bool { return f.Anonymous })
	for _, f := range fields {
		s[0] = append(s[0], jsonName(&f))
	}
	for i := range list.Len() {
		var line []any
		for _, f := range fields {
			line = append(line, cell(list.Index(i).FieldByIndex(f.Index)))
		}
		s.add(line...)
	}
	return s
}

func jsonName(f *reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return cmp.Or(name, f.Name)
}

// cell is a member in a table.
func cell(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Time:
		return instant(x)
	case *time.Time:
		return moment(x)
	case []string:
		return strings.Join(x, ", ")
	case []row.Entry:
		var list []string
		for _, e := range x {
			list = append(list, e.String())
		}
		return strings.Join(list, "; ")
	}
	switch v.Kind() { //nolint:exhaustive // the others are as they are printed
	case reflect.Struct, reflect.Map, reflect.Slice, reflect.Pointer:
		text, _ := json.Marshal(v.Interface()) // it was JSON
		return string(text)
	}
	return fmt.Sprint(v)
}
