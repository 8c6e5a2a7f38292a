package platform

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
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

// fields is one JSON object under check.
type fields struct {
	c  *checker
	at string
	m  map[string]any
}

// only reports the members with other names.
func (f fields) only(known ...string) {
	var unknown []string
	for name := range f.m {
		if !slices.Contains(known, name) {
			unknown = append(unknown, "'"+name+"'")
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		f.c.status = f.c.unknown
		f.c.add(f.at, "additional properties %s not allowed", strings.Join(unknown, ", "))
	}
}

func (f fields) place(name string) string { return f.at + "." + name }

func (f fields) has(name string) bool { _, ok := f.m[name]; return ok }

// inner is a member that is an object.
func (f fields) inner(name string) (inner fields, isObject bool) {
	m, isObject := f.m[name].(map[string]any)
	return fields{c: f.c, at: f.place(name), m: m}, isObject
}

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

// cudaVersion says what is wrong with a version of the form major.minor.
func cudaVersion(s string) string {
	major, minor, ok := strings.Cut(s, ".")
	if !ok || !digits(major) || !digits(minor) {
		return "'" + s + "' is not a version of the form <major>.<minor>"
	}
	return ""
}

// cudaVersionOrEmpty is cudaVersion for a member whose empty text takes a version back.
func cudaVersionOrEmpty(s string) string {
	if s == "" {
		return ""
	}
	return cudaVersion(s)
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
