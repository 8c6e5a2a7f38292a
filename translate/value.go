package translate

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
)

// The functions below read decoded JSON. They never fail: a value that is
// missing or of another type reads as the zero value, because the platform may
// leave members out or add new shapes and a legacy client must still be
// answered.

// Record is a decoded object that is no map: it is read and never changed.
type Record interface {
	// Get returns the value of a member.
	Get(name string) (value any, ok bool)
	// Text returns a member that is a string, "" for any other.
	Text(name string) string
	// AppendTexts appends the strings of a member that is an array, none for any other.
	AppendTexts(texts []string, name string) []string
	// Number returns a member that is a number, "" for any other.
	Number(name string) json.Number
	// AppendNames appends the names of the members.
	AppendNames(names []string) []string
	// Map returns it as a map, with no Records in it.
	Map() map[string]any
}

// At follows member names down from v and returns the value there, nil
// when a step is missing or not an object.
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

// Text returns the string at path, "" when there is none.
func Text(v any, path ...string) string {
	v, r, name := above(v, path)
	if r != nil {
		return r.Text(name)
	}
	s, _ := v.(string)
	return s
}

// above returns the Record that holds the value at path, with its name there. If none does,
// it returns the value.
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

// IsBlank reports whether an input v is null, an empty string, list or object, or a list
// or object of such values. Clients send these for options that their callers left out.
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

// Flag returns the boolean at path, false when there is none.
func Flag(v any, path ...string) bool {
	b, _ := At(v, path...).(bool)
	return b
}

// Members returns the object at path, nil when there is none. The map belongs
// to v and must not be changed.
func Members(v any, path ...string) map[string]any {
	switch object := At(v, path...).(type) {
	case map[string]any:
		return object
	case Record:
		return object.Map()
	}
	return nil
}

// Empty reports whether v is no object, or one without members.
func Empty(v any) bool {
	if r, ok := v.(Record); ok {
		return len(r.AppendNames(nil)) == 0
	}
	return len(Members(v)) == 0
}

// Items returns the array at path, nil when there is none. The slice belongs to
// v and must not be changed.
func Items(v any, path ...string) []any {
	l, _ := At(v, path...).([]any)
	return l
}

// Texts returns the strings of the array at path, other elements left out.
func Texts(v any, path ...string) []string { return AppendTexts([]string{}, v, path...) }

// AppendTexts appends the strings of the array at path, other elements left out.
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

// Whole returns the number at path rounded down, 0 when there is none or it
// does not fit.
func Whole(v any, path ...string) int64 {
	v, r, name := above(v, path)
	var f float64
	var ok bool
	if r != nil {
		f, ok = Float(r.Number(name)) // as a value it would be an allocation
	} else {
		f, ok = Number(v)
	}
	f = math.Floor(f)
	if !ok || math.Abs(f) > maxExact {
		return 0
	}
	return int64(f)
}

// Decimal returns the number at path as it was written, "" when there is none.
func Decimal(v any, path ...string) json.Number {
	v, r, name := above(v, path)
	if r != nil {
		return r.Number(name)
	}
	n, _ := v.(json.Number)
	return n
}

// Float returns n as a float64; ok is false when it is no finite number.
func Float(n json.Number) (f float64, ok bool) {
	if n == "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(n), 64)
	return f, err == nil
}

// Ceil returns v rounded up; ok is false when it is no number or does not fit.
func Ceil(v any) (n int64, ok bool) {
	f, ok := Number(v)
	f = math.Ceil(f)
	return int64(f), ok && math.Abs(f) <= maxExact
}

// maxExact is the largest magnitude up to which every integer has a float64 of
// its own, 2^53.
const maxExact = 1 << 53

// Number returns v as a float64; ok is false when it is no finite number.
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

// Integer returns v as an integer. A number written with a fraction or exponent
// counts when its value is integral ("20.0", "2e1"); magnitudes above 2^53 do
// not.
func Integer(v any) (int64, bool) {
	f, ok := Number(v)
	if !ok || f != math.Trunc(f) || math.Abs(f) > maxExact {
		return 0, false
	}
	return int64(f), true
}

// List turns a slice into a JSON array; nil becomes an empty one.
func List[T any](items []T) []any {
	list := make([]any, len(items))
	for i, item := range items {
		list[i] = item
	}
	return list
}

// Int writes an integer as a JSON number without fraction or exponent.
func Int(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }

// Unique returns the strings in their order without empty and repeated ones.
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
