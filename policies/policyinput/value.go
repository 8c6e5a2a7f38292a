package policyinput

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// SplitPointer returns the reference tokens of an RFC 6901 pointer to something inside a
// document; the whole document is an error.
func SplitPointer(p string) ([]string, error) {
	if p == "" || p[0] != '/' {
		return nil, fmt.Errorf("%q is not a pointer into the body", p)
	}
	parts := strings.Split(p[1:], "/")
	for i, s := range parts {
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(s), "~") {
			return nil, fmt.Errorf("%q is not a pointer: bad escape", p)
		}
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
	}
	return parts, nil
}

// JoinPointer returns the RFC 6901 pointer of reference tokens.
func JoinPointer(path []string) string {
	var b strings.Builder
	for _, name := range path {
		b.WriteByte('/')
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1"))
	}
	return b.String()
}

// Deferred is a value of a body that is not decoded before it is looked at.
type Deferred interface {
	// Decoded returns it as decoded JSON, in which there may be others. It returns the
	// same value each time and may be called from several goroutines at once. It is an
	// error where the value is too large to be decoded: nothing can be said about it then.
	Decoded() any
}

// Decoded returns a value of a body that is, itself, decoded.
func Decoded(v any) any {
	if d, deferred := v.(Deferred); deferred {
		return d.Decoded()
	}
	return v
}

// Lookup returns the value at a path of decoded JSON; ok is false if there is none.
func Lookup(v any, path []string) (value any, ok bool) {
	for _, name := range path {
		switch x := Decoded(v).(type) {
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

// Equal reports whether two values of decoded JSON are equal, numbers by value.
func Equal(a, b any) bool {
	var c Converter
	x, err1 := c.term(a, everything)
	y, err2 := c.term(b, everything)
	return err1 == nil && err2 == nil && x != nil && y != nil && x.Value.Compare(y.Value) == 0
}

// Plain returns a configuration value as decoded JSON: numbers become
// json.Number, and what JSON cannot express is an error.
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
		return nil, fmt.Errorf("a value of type %T is not allowed", v)
	}
}
