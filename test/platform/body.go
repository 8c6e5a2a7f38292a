package platform

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The body of a request is a struct. The tag "body" of a field is the name of a member, which is nil in a pointer, slice or
// map if it is left out. Further tags say what it must be, apart from the type of the field:
//
//	need        "yes": it must be there
//	min, max    the bounds of a number, or of the length of a text
//	least, most the bounds of the number of items
//	unique      "yes": no two items are equal
//	enum        the values of a text
//	form        the form of a text, or of the texts of a list, by its name in forms
//	null        "yes": null is the zero value
//	open        "yes": the object may have other members, too
//
// Rules across members are in the method check of a struct, which is called last.

// forms say what is wrong with a text.
var forms = map[string]func(string) string{
	"CUDA version": cudaVersion, "CUDA version or empty": cudaVersionOrEmpty, "GPU type": typeName, "SSH key": sshKey,
	"secret name": checkSecretName, "secret description": checkDescription,
}

// bodyOf reads a body, which is an object with the members of B.
func bodyOf[B any](x *exchange) (*B, error) {
	body, err := x.decode()
	if err != nil {
		return nil, err
	}
	want, c := new(B), &checker{unknown: x.route.unknown}
	value{c: c, at: "$", v: body}.read(reflect.ValueOf(want).Elem())
	return want, c.err()
}

// fill reads the members of an object that may have others, too, into the struct that v points to.
func (f fields) fill(v any) { f.read(reflect.ValueOf(v).Elem()) }

func (f fields) read(to reflect.Value) {
	all := reflect.VisibleFields(to.Type())
	for _, field := range all {
		if field.Tag.Get("need") != "" {
			f.require(field.Tag.Get("body"))
		}
	}
	for _, field := range all {
		name := field.Tag.Get("body")
		if name != "" && f.has(name) {
			value{f.c, f.place(name), f.m[name], field.Tag}.read(to.FieldByIndex(field.Index))
		}
	}
	if rules, has := reflect.TypeAssert[interface{ check(f fields) }](to.Addr()); has {
		rules.check(f)
	}
}

// value is a value of a body, with its place and the tags of its field.
type value struct {
	c   *checker
	at  string
	v   any
	tag reflect.StructTag
}

// read stores the value, and reports what is wrong with it.
func (m value) read(to reflect.Value) (ok bool) {
	switch kind := to.Kind(); {
	case kind == reflect.Pointer:
		p := reflect.New(to.Type().Elem())
		if ok = m.read(p.Elem()); ok {
			to.Set(p)
		}
		return ok
	case m.v == nil && m.tag.Get("null") != "":
		return true
	case kind == reflect.String:
		return m.text(to)
	case kind == reflect.Int || kind == reflect.Int64:
		return m.integer(to)
	case kind == reflect.Struct:
		return m.object(to)
	case to.Type() == reflect.TypeFor[json.RawMessage]():
		to.SetBytes(encoded(m.v))
		return true
	case kind == reflect.Slice:
		return m.list(to)
	}
	switch to := to.Addr().Interface().(type) {
	case *any:
		*to, ok = m.v, true
	case *bool:
		*to, ok = expect[bool](m, "boolean")
	case *float64:
		*to, ok = m.number()
	case *map[string]string:
		*to, ok = m.textMap()
	default:
		panic(fmt.Sprintf("platform: no body has a %T", to))
	}
	return ok
}

// expect returns the value if it has the given Go type, and reports any other.
func expect[T any](m value, want string) (t T, ok bool) {
	if t, ok = m.v.(T); !ok {
		m.c.add(m.at, "expected %s, but got %s", want, kind(m.v))
	}
	return t, ok
}

// typed is expect for a member of an object, which may be left out.
func typed[T any](f fields, name, want string) (t T, ok bool) {
	if f.has(name) {
		t, ok = expect[T](value{c: f.c, at: f.place(name), v: f.m[name]}, want)
	}
	return t, ok
}

// limit is the number in a tag.
func (m value) limit(tag string, otherwise int64) int64 {
	if n, err := strconv.ParseInt(m.tag.Get(tag), 10, 64); err == nil {
		return n
	}
	return otherwise
}

func (m value) text(to reflect.Value) bool {
	s, ok := expect[string](m, "string")
	if !ok {
		return false
	}
	length, fault := int64(utf8.RuneCountInString(s)), ""
	if form := forms[m.tag.Get("form")]; form != nil {
		fault = form(s)
	}
	values := strings.Fields(m.tag.Get("enum"))
	switch least, most := m.limit("min", 0), m.limit("max", math.MaxInt64); {
	case len(values) > 0 && !slices.Contains(values, s):
		fault = oneOf(values...)(s)
	case length < least:
		fault = fmt.Sprintf("must be %d characters or longer", least)
	case length > most:
		fault = fmt.Sprintf("must be %d characters or shorter", most)
	}
	if fault != "" {
		m.c.add(m.at, "%s", fault)
		return false
	}
	to.SetString(s)
	return true
}

// integer reads a whole number. It is at most 1<<20 in an int and 1<<40 in an int64, unless the tag max says otherwise.
func (m value) integer(to reflect.Value) bool {
	v, ok := expect[json.Number](m, "integer")
	if !ok {
		return false
	}
	most := int64(1) << 40
	if to.Kind() == reflect.Int {
		most = 1 << 20
	}
	n, whole := wholeNumber(v)
	switch low, high := m.limit("min", 0), m.limit("max", most); {
	case !whole:
		m.c.add(m.at, "expected integer, but got number")
	case n < low:
		m.c.add(m.at, "must be %d or more, but got %d", low, n)
	case n > high:
		m.c.add(m.at, "must be %d or less, but got %d", high, n)
	default:
		to.SetInt(n)
		return true
	}
	return false
}

func (m value) number() (float64, bool) {
	v, ok := expect[json.Number](m, "number")
	if !ok {
		return 0, false
	}
	low := -math.MaxFloat64
	if least, err := strconv.ParseFloat(m.tag.Get("min"), 64); err == nil {
		low = least
	}
	n, err := strconv.ParseFloat(string(v), 64)
	if err != nil || n < low {
		m.c.add(m.at, "must be %v or more, but got %s", low, v)
		return 0, false
	}
	return n, true
}

func (m value) textMap() (map[string]string, bool) {
	members, ok := expect[map[string]any](m, "object")
	out := make(map[string]string, len(members))
	for _, key := range slices.Sorted(maps.Keys(members)) {
		out[key], _ = expect[string](value{c: m.c, at: m.at + "." + key, v: members[key]}, "string")
	}
	return out, ok
}

// list reads an array.
func (m value) list(to reflect.Value) bool {
	vs, ok := expect[[]any](m, "array")
	if !ok {
		return false
	}
	n := int64(len(vs))
	if least := m.limit("least", 0); n < least {
		m.c.add(m.at, "must have %d item or more, but got %d", least, n)
	}
	if most := m.limit("most", n); n > most {
		m.c.add(m.at, "must have %d item or fewer, but got %d", most, n)
	}
	to.Set(reflect.MakeSlice(to.Type(), len(vs), len(vs)))
	for i, v := range vs {
		ok = value{m.c, fmt.Sprintf("%s[%d]", m.at, i), v, m.tag}.read(to.Index(i)) && ok
	}
	if ok && m.tag.Get("unique") != "" {
		m.distinct(to)
	}
	return ok
}

// distinct reports items that are there twice.
func (m value) distinct(list reflect.Value) {
	seen := map[any]int{}
	for i := range list.Len() {
		item := list.Index(i).Interface()
		if first, twice := seen[item]; twice {
			m.c.add(m.at, "items %d and %d are equal", first, i)
		} else {
			seen[item] = i
		}
	}
}

// object reads an object into a struct.
func (m value) object(to reflect.Value) bool {
	members, ok := expect[map[string]any](m, "object")
	if !ok {
		return false
	}
	f := fields{c: m.c, at: m.at, m: members}
	if m.tag.Get("open") == "" {
		var known []string
		for _, field := range reflect.VisibleFields(to.Type()) {
			if name, isMember := field.Tag.Lookup("body"); isMember {
				known = append(known, name)
			}
		}
		f.only(known...)
	}
	f.read(to)
	return true
}
