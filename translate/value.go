package translate

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
)

// These functions read decoded JSON. They never fail: for a missing value or a value of another type, they return the zero value. The
// platform may omit members or add new shapes, and a legacy client must still get a response.

// Record is a decoded, read-only JSON object in a form other than a map.
type Record interface {
	// Get returns the value of a member.
	Get(name string) (value any, ok bool)
	// Text returns a string member, or "" if it is missing or of another type.
	Text(name string) string
	// AppendTexts appends the strings of an array member, or nothing if it is missing or of another type.
	AppendTexts(texts []string, name string) []string
	// Number returns a number member, or "" if it is missing or of another type.
	Number(name string) json.Number
	// AppendNames appends the names of the members.
	AppendNames(names []string) []string
	// Map converts the object to a map that contains no Records.
	Map() map[string]any
}

// At returns the value at a path of member names in v, or nil if one of the members is missing or its parent is not an object.
func At(v any, path ...string) any {
	for _, name := range path {
		switch object := v.(type) {
		case map[string]any:
			v = object[name]
		case Record:
			v, _ = object.Get(name)
		default:
			return nil
		}
	}
	return v
}

// Text returns the string at path, or "".
func Text(v any, path ...string) string {
	v, r, name := above(v, path)
	if r != nil {
		return r.Text(name)
	}
	s, _ := v.(string)
	return s
}

// above returns the Record that contains the value at path, and the member name. If no Record contains it, above returns
// the value.
func above(v any, path []string) (value any, r Record, name string) {
	last := len(path) - 1
	if last < 0 {
		return v, nil, ""
	}
	v = At(v, path[:last]...)
	if r, ok := v.(Record); ok {
		return nil, r, path[last]
	}
	return At(v, path[last]), nil, ""
}

// IsBlank reports whether v is null, an empty string, list or object, or a list or object that contains only blank values. Clients send
// such values for options that were not set.
func IsBlank(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return !IsBlank(item) })
	case map[string]any:
		return IsBlank(slices.Collect(maps.Values(v)))
	}
	return false
}

// Flag returns the boolean at path, or false.
func Flag(v any, path ...string) bool {
	b, _ := At(v, path...).(bool)
	return b
}

// Members returns the object at path, or nil. The map belongs to v and must not be modified.
func Members(v any, path ...string) map[string]any {
	switch object := At(v, path...).(type) {
	case map[string]any:
		return object
	case Record:
		return object.Map()
	}
	return nil
}

// Empty reports whether v has no members or is not an object.
func Empty(v any) bool {
	if r, ok := v.(Record); ok {
		return len(r.AppendNames(nil)) == 0
	}
	return len(Members(v)) == 0
}

// Items returns the array at path, or nil. The slice belongs to v and must not be modified.
func Items(v any, path ...string) []any {
	l, _ := At(v, path...).([]any)
	return l
}

// Texts returns the strings in the array at path and skips other elements.
func Texts(v any, path ...string) []string { return AppendTexts([]string{}, v, path...) }

// AppendTexts appends the strings in the array at path and skips other elements.
func AppendTexts(texts []string, v any, path ...string) []string {
	v, r, name := above(v, path)
	if r != nil {
		return r.AppendTexts(texts, name)
	}
	items, _ := v.([]any)
	texts = slices.Grow(texts, len(items))
	for _, item := range items {
		if s, ok := item.(string); ok {
			texts = append(texts, s)
		}
	}
	return texts
}

// Whole returns the number at path, rounded down. It returns 0 if the number is missing or exceeds 2^53.
func Whole(v any, path ...string) int64 {
	v, r, name := above(v, path)
	var f float64
	var ok bool
	if r != nil {
		f, ok = Float(r.Number(name)) // json.Number in an interface would allocate
	} else {
		f, ok = Number(v)
	}
	f = math.Floor(f)
	if !ok || math.Abs(f) > maxExact {
		return 0
	}
	return int64(f)
}

// Decimal returns the number at path in its original spelling, or "".
func Decimal(v any, path ...string) json.Number {
	v, r, name := above(v, path)
	if r != nil {
		return r.Number(name)
	}
	n, _ := v.(json.Number)
	return n
}

// Float converts n to a float64; ok is false unless n is a finite number.
func Float(n json.Number) (f float64, ok bool) {
	if n == "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(n), 64)
	return f, err == nil
}

// Ceil rounds v up; ok is false if v is not a number or exceeds 2^53.
func Ceil(v any) (n int64, ok bool) {
	f, ok := Number(v)
	f = math.Ceil(f)
	return int64(f), ok && math.Abs(f) <= maxExact
}

// maxExact is 2^53. A float64 represents every integer up to it exactly.
const maxExact = 1 << 53

// Number converts v to a float64; ok is false unless v is a finite number.
func Number(v any) (f float64, ok bool) {
	switch n := v.(type) {
	case json.Number:
		return Float(n)
	case float64:
		return n, !math.IsNaN(n) && !math.IsInf(n, 0)
	case int64:
		return float64(n), true
	case int:
		return float64(n), true
	}
	return 0, false
}

// Integer converts v to an integer. A number with a fraction or exponent is accepted if its value is integral ("20.0",
// "2e1"). Magnitudes above 2^53 are rejected.
func Integer(v any) (int64, bool) {
	f, ok := Number(v)
	if !ok || f != math.Trunc(f) || math.Abs(f) > maxExact {
		return 0, false
	}
	return int64(f), true
}

// List converts a slice to a JSON array. Nil becomes an empty array.
func List[T any](items []T) []any {
	list := make([]any, len(items))
	for i, item := range items {
		list[i] = item
	}
	return list
}

// Int formats n as a JSON number without fraction or exponent.
func Int(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }

// Unique returns the strings in order, without empty and repeated ones.
func Unique(texts []string) []string {
	kept := make([]string, 0, min(len(texts), 16))
	seen := map[string]bool{}
	for _, s := range texts {
		if s != "" && !seen[s] {
			seen[s] = true
			kept = append(kept, s)
		}
	}
	return kept
}
