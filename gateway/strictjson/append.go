package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrDepth is returned by Append for values nested more than 1000 deep, including values that contain themselves. Decode
// does not return such values.
var ErrDepth = errors.New("strictjson: value is nested too deeply")

const appendDepth = 1000

// Append appends the canonical form of v to dst: without white space, with members sorted by the bytes of their names,
// strings with the shortest escapes and without HTML escaping, and numbers in their original spelling. It accepts the
// types that Decode returns. For any other type, an invalid number or invalid UTF-8, it returns an error and dst
// unchanged.
func Append(dst []byte, v any) ([]byte, error) {
	out, err := appendValue(dst, v, 0)
	if err != nil {
		return dst, err
	}
	return out, nil
}

func appendValue(dst []byte, v any, depth int) ([]byte, error) {
	if depth > appendDepth {
		return nil, ErrDepth
	}
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case bool:
		if v {
			return append(dst, "true"...), nil
		}
		return append(dst, "false"...), nil
	case string:
		return appendString(dst, v)
	case json.Number:
		if !isNumber(string(v)) {
			return nil, fmt.Errorf("strictjson: %s is not a JSON number", quoted(string(v)))
		}
		return append(dst, v...), nil
	case *Raw:
		return append(dst, v.data...), nil
	case []any:
		return appendArray(dst, v, depth)
	case map[string]any:
		return appendObject(dst, v, depth)
	}
	return nil, fmt.Errorf("strictjson: cannot write a value of type %T", v)
}

func appendArray(dst []byte, items []any, depth int) ([]byte, error) {
	dst = append(dst, '[')
	var err error
	for i, item := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendValue(dst, item, depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

func appendObject(dst []byte, m map[string]any, depth int) ([]byte, error) {
	var few [16]string // avoids an allocation for small objects
	names := few[:0]
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	dst = append(dst, '{')
	var err error
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendString(dst, name); err != nil {
			return nil, err
		}
		if dst, err = appendValue(append(dst, ':'), m[name], depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

func appendString(dst []byte, s string) ([]byte, error) {
	out, err := jsontext.AppendQuote(dst, s)
	if err != nil {
		return nil, fmt.Errorf("strictjson: write the string %s: %w", quoted(s), err)
	}
	return out, nil
}

// isNumber reports whether s matches the number grammar of RFC 8259, section 6.
func isNumber(s string) bool {
	i := 0
	digits := func() bool {
		from := i
		for i < len(s) && '0' <= s[i] && s[i] <= '9' {
			i++
		}
		return i > from
	}
	if i < len(s) && s[i] == '-' {
		i++
	}
	if i < len(s) && s[i] == '0' {
		i++
	} else if !digits() {
		return false
	}
	if i < len(s) && s[i] == '.' {
		i++
		if !digits() {
			return false
		}
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		if !digits() {
			return false
		}
	}
	return i == len(s)
}
