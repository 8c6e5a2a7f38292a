package policyinput

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// SplitPointer returns the reference tokens of an RFC 6901 pointer. It returns an error for the pointer to the whole document.
func SplitPointer(p string) ([]string, error) {
	if p == "" || p[0] != '/' {
		return nil, fmt.Errorf("%q does not point into the body", p)
	}
	if !jsontext.Pointer(p).IsValid() {
		return nil, fmt.Errorf("%q is not a JSON Pointer: invalid escape sequence", p)
	}
	return slices.Collect(jsontext.Pointer(p).Tokens()), nil
}

// Lookup returns the value at a path in decoded JSON. ok is false if the path leads nowhere.
func Lookup(v any, path []string) (value any, ok bool) {
	for _, name := range path {
		switch x := operation.Decoded(v).(type) {
		case map[string]any:
			next, ok := x[name]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(x) {
				return nil, false
			}
			v = x[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// Equal reports whether two decoded JSON values are equal. Numbers are compared by value.
func Equal(a, b any) bool {
	var c Converter
	x, err1 := c.term(a, everything)
	y, err2 := c.term(b, everything)
	return err1 == nil && err2 == nil && x != nil && y != nil && x.Value.Compare(y.Value) == 0
}

// Plain converts a configuration value to decoded JSON: numbers become json.Number. It returns an error if JSON cannot represent
// the value.
func Plain(v any) (any, error) {
	switch x := v.(type) {
	case nil, bool, string, json.Number:
		return x, nil
	case int, int64, uint64, float64:
		text, err := json.Marshal(x)
		if err != nil {
			return nil, fmt.Errorf("%v is not a JSON number", x)
		}
		return json.Number(text), nil
	case []any:
		out := make([]any, len(x))
		for i, item := range x {
			var err error
			if out[i], err = Plain(item); err != nil {
				return nil, fault.At(fault.Index("", i), err)
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, item := range x {
			var err error
			if out[k], err = Plain(item); err != nil {
				return nil, fault.At(fault.Key("", k), err)
			}
		}
		return out, nil
	default:
		return nil, fmt.Errorf("values of type %T are not allowed", v)
	}
}
