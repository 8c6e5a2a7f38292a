package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// plain returns the default view of responses of type t; see plainPage.
func plain(t reflect.Type) view {
	return func(text []byte, _ asked) (page, error) {
		if t == nil {
			return page{text: []string{"done"}}, nil
		}
		v := reflect.New(t)
		if err := json.Unmarshal(text, v.Interface()); err != nil {
			return page{}, err
		}
		for v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		return plainPage(v), nil
	}
}

// plainPage returns a table for each list of a response, and sentences for its other members. A response without lists becomes a table with
// one row.
func plainPage(v reflect.Value) (p page) {
	header, line := sheet{{}}, []any{}
	for _, f := range reflect.VisibleFields(v.Type()) {
		value := v.FieldByIndex(f.Index)
		switch {
		case f.Anonymous:
		case value.Kind() == reflect.Slice && value.Type().Elem().Kind() == reflect.Struct:
			p.sheets = append(p.sheets, plainSheet(value))
		default:
			header[0], line = append(header[0], jsonName(&f)), append(line, cell(jsonName(&f), value))
		}
	}
	if len(p.sheets) == 0 {
		p.sheets = []sheet{append(header, line)}
		return p
	}
	for i, name := range header[0] {
		if text := peopleText(line[i], false); text != "" && text != "false" {
			p.text = append(p.text, sentence(fmt.Sprint(name), text))
		}
	}
	if len(p.text) > 0 {
		p.text = append(p.text, "")
	}
	return p
}

// sentence returns a member of a response as a sentence.
func sentence(name, text string) string {
	if name == "next" {
		return "More entries: --cursor " + text
	}
	label := strings.ToLower(capital.ReplaceAllString(name, " $0"))
	return strings.ToUpper(label[:1]) + label[1:] + ": " + text
}

// capital matches the letters that begin a word in the name of a member, such as lastUsed.
var capital = regexp.MustCompile(`[A-Z]`)

// plainSheet returns a table with a row for each list item and a column for each member of the items.
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
			line = append(line, cell(jsonName(&f), list.Index(i).FieldByIndex(f.Index)))
		}
		s.add(line...)
	}
	return s
}

func jsonName(f *reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return cmp.Or(name, f.Name)
}

// cell returns the table cell for a member.
func cell(name string, v reflect.Value) any {
	switch x := v.Interface().(type) {
	case time.Time, *time.Time:
		return x
	case []string:
		return strings.Join(x, ", ")
	case []adminapi.Entry:
		var list []string
		for _, e := range x {
			list = append(list, e.String())
		}
		return strings.Join(list, "; ")
	}
	switch name {
	case "usd", "perHour", "perMonth":
		return usd(v.String())
	case "percent":
		return share(v.Int())
	}
	switch v.Kind() { //nolint:exhaustive // all others are printed with their default format
	case reflect.Struct, reflect.Map, reflect.Slice, reflect.Pointer:
		text, _ := json.Marshal(v.Interface()) // it was decoded from JSON
		return members(text)
	}
	return v.Interface()
}

// members returns the members of a JSON object as name=value, and any other value unchanged.
func members(text []byte) string {
	var object map[string]any
	switch err := json.Unmarshal(text, &object); {
	case err != nil:
		return string(text)
	case object == nil:
		return ""
	}
	list := make(map[string]string, len(object))
	for name, value := range object {
		list[name] = fmt.Sprint(value)
	}
	return pairs(list, "=")
}
