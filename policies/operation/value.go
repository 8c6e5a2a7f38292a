package operation

import (
	"encoding/json"
	"strconv"
)

// Deferred is a value in decoded JSON that is decoded when it is first read.
type Deferred interface {
	// Decoded returns the value as decoded JSON, which may contain further Deferred values. It returns the same value each time and
	// is safe for concurrent use. If the value is too large to decode, it returns an error.
	Decoded() any
}

// Decoded returns v, decoded if it is Deferred. Values within it may still be Deferred.
func Decoded(v any) any {
	if d, deferred := v.(Deferred); deferred {
		return d.Decoded()
	}
	return v
}

// Strings returns a decoded JSON list of strings. ok is false for any other value.
func Strings(v any) (texts []string, ok bool) {
	items, ok := v.([]any)
	for _, item := range items {
		text, isText := item.(string)
		if !isText {
			return nil, false
		}
		texts = append(texts, text)
	}
	return texts, ok
}

// WholeNumber returns a decoded JSON number. ok is false if the value is not a whole number in range.
func WholeNumber(v any) (n int64, ok bool) {
	switch x := v.(type) {
	case json.Number:
		n, err := strconv.ParseInt(x.String(), 10, 64)
		return n, err == nil
	case float64:
		n := int64(x)
		return n, float64(n) == x && x > -1<<53 && x < 1<<53
	case int:
		return int64(x), true
	case int64:
		return x, true
	default:
		return 0, false
	}
}
