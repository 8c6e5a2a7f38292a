package platform

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// checker gathers everything that is wrong with one body, each entry opening
// with the place it is about: "$.gpu.count: must be 1 or more, but got 0".
type checker struct {
	errs []string
	// unknown is the status of a body with unknown members; zero is 422, as for all else.
	unknown, status int
}

func (c *checker) add(at, format string, args ...any) {
	c.errs = append(c.errs, at+": "+fmt.Sprintf(format, args...))
}

// err returns a refusal with what was found, or nil.
func (c *checker) err() error {
	if len(c.errs) == 0 {
		return nil
	}
	p := invalid(c.errs...)
	p.status = cmp.Or(c.status, p.status)
	return p
}

// kind names the JSON type of a decoded value.
func kind(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		if _, ok := wholeNumber(v); ok {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	default:
		return "object"
	}
}

// wholeNumber returns the integer n stands for: 3, 3.0 and 30e-1 are the same.
func wholeNumber(n json.Number) (int64, bool) {
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return i, true
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// fields is one JSON object under check. Its readers report a value of the
// wrong shape and then say it is absent, so callers test only for presence.
type fields struct {
	c  *checker
	at string
	m  map[string]any
}

// object opens v, which may only have the known names.
func (c *checker) object(at string, v any, known ...string) (fields, bool) {
	m, ok := v.(map[string]any)
	if !ok {
		c.add(at, "expected object, but got %s", kind(v))
		return fields{c: c, at: at}, false
	}
	var unknown []string
	for name := range m {
		if !slices.Contains(known, name) {
			unknown = append(unknown, "'"+name+"'")
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		c.status = c.unknown
		c.add(at, "additional properties %s not allowed", strings.Join(unknown, ", "))
	}
	return fields{c: c, at: at, m: m}, true
}

func (f fields) place(name string) string { return f.at + "." + name }

func (f fields) has(name string) bool { _, ok := f.m[name]; return ok }

// require reports the names that are missing.
func (f fields) require(names ...string) {
	for _, name := range names {
		if !f.has(name) {
			f.c.add(f.at, "missing property '%s'", name)
		}
	}
}

// atLeastOne reports an object without members.
func (f fields) atLeastOne() {
	if len(f.m) == 0 {
		f.c.add(f.at, "must have 1 property or more, but got 0")
	}
}

// typed returns the member of the given Go type, reporting any other.
func typed[T any](f fields, name, want string) (t T, ok bool) {
	v, there := f.m[name]
	if t, ok = v.(T); there && !ok {
		f.c.add(f.place(name), "expected %s, but got %s", want, kind(v))
	}
	return t, ok
}

// text reads a string of at least minLen characters.
func (f fields) text(name string, minLen int) (string, bool) {
	s, ok := typed[string](f, name, "string")
	if ok && utf8.RuneCountInString(s) < minLen {
		f.c.add(f.place(name), "must be %d characters or longer", minLen)
		return "", false
	}
	return s, ok
}

// bounded reads a string of 1 to most characters.
func (f fields) bounded(name string, most int) (string, bool) {
	s, ok := f.text(name, 1)
	if utf8.RuneCountInString(s) > most {
		f.c.add(f.place(name), "must be %d characters or shorter", most)
		return "", false
	}
	return s, ok
}

// given points to what a reader returns; nil when that is left out.
func given[T any](v T, ok bool) *T {
	if !ok {
		return nil
	}
	return &v
}

// flag reads a boolean, nil when it is left out.
func (f fields) flag(name string) *bool { return given(typed[bool](f, name, "boolean")) }

// integer reads a whole number within low and high.
func (f fields) integer(name string, low, high int64) (int64, bool) {
	v, ok := typed[json.Number](f, name, "integer")
	if !ok {
		return 0, false
	}
	n, whole := wholeNumber(v)
	switch {
	case !whole:
		f.c.add(f.place(name), "expected integer, but got number")
	case n < low:
		f.c.add(f.place(name), "must be %d or more, but got %d", low, n)
	case n > high:
		f.c.add(f.place(name), "must be %d or less, but got %d", high, n)
	default:
		return n, true
	}
	return 0, false
}

// count is integer for members that may be left out, whole with a value in place of those.
func (f fields) count(name string, low, high int64) *int {
	n, ok := f.integer(name, low, high)
	return given(int(n), ok)
}

func (f fields) whole(name string, low, high int64, otherwise int) int {
	return *cmp.Or(f.count(name, low, high), &otherwise)
}

// number reads a number of at least low.
func (f fields) number(name string, low float64) (float64, bool) {
	v, ok := typed[json.Number](f, name, "number")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseFloat(string(v), 64)
	if err != nil || n < low {
		f.c.add(f.place(name), "must be %v or more, but got %s", low, v)
		return 0, false
	}
	return n, true
}

// enum reads one of values.
func (f fields) enum(name string, values ...string) (string, bool) {
	s, ok := typed[string](f, name, "string")
	if ok && !slices.Contains(values, s) {
		f.c.add(f.place(name), "must be one of %s, but got '%s'", strings.Join(values, ", "), s)
		return "", false
	}
	return s, ok
}

// list reads an array whose items pass item, which says what is wrong with one
// or returns the empty string. A nil item takes every string.
func (f fields) list(name string, item func(string) string) (list []string, ok bool) {
	vs, ok := typed[[]any](f, name, "array")
	if !ok {
		return nil, false
	}
	list = make([]string, 0, len(vs))
	for i, v := range vs {
		at := fmt.Sprintf("%s[%d]", f.place(name), i)
		s, isText := v.(string)
		if !isText {
			f.c.add(at, "expected string, but got %s", kind(v))
			ok = false
			continue
		}
		if item != nil {
			if fault := item(s); fault != "" {
				f.c.add(at, "%s", fault)
				ok = false
			}
		}
		list = append(list, s)
	}
	return list, ok
}

// textMap reads an object of strings; nil when it is left out.
func (f fields) textMap(name string) map[string]string {
	m, ok := typed[map[string]any](f, name, "object")
	if !ok {
		return nil
	}
	out := make(map[string]string, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		v := m[key]
		s, isText := v.(string)
		if !isText {
			f.c.add(f.place(name)+"."+key, "expected string, but got %s", kind(v))
			continue
		}
		out[key] = s
	}
	return out
}

// child opens a member that is an object with the known names.
func (f fields) child(name string, known ...string) (fields, bool) {
	v, ok := f.m[name]
	if !ok {
		return fields{}, false
	}
	return f.c.object(f.place(name), v, known...)
}

// cudaVersion says what is wrong with a version of the form major.minor.
func cudaVersion(s string) string {
	major, minor, ok := strings.Cut(s, ".")
	if !ok || !digits(major) || !digits(minor) {
		return "'" + s + "' is not a version of the form <major>.<minor>"
	}
	return ""
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// compareVersions orders dotted versions component by component, as numbers.
func compareVersions(a, b string) int {
	for a != "" || b != "" {
		var x, y string
		x, a, _ = strings.Cut(a, ".")
		y, b, _ = strings.Cut(b, ".")
		i, _ := strconv.Atoi(x)
		j, _ := strconv.Atoi(y)
		if i != j {
			return i - j
		}
	}
	return 0
}
