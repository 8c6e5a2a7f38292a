package engine

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// appendScalar writes a leaf according to its type in the schema. Integers have neither fraction nor exponent, because
// clients decode them into integers. A value of another type becomes null.
func appendScalar(buf []byte, typ string, v any) []byte {
	switch typ {
	case "Int":
		if n, ok := whole(v); ok {
			return strconv.AppendInt(buf, n, 10)
		}
		return append(buf, "null"...)
	case "Float":
		if f, ok := number(v); ok {
			return strconv.AppendFloat(buf, f, 'f', -1, 64)
		}
		return append(buf, "null"...)
	case "Boolean":
		if b, ok := v.(bool); ok {
			return strconv.AppendBool(buf, b)
		}
		return append(buf, "null"...)
	}
	switch s := v.(type) {
	case string:
		return appendString(buf, s)
	case *string:
		return appendString(buf, *s)
	}
	return append(buf, "null"...)
}

func whole(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case *int64:
		return *v, true
	case int:
		return int64(v), true
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, true
		}
	}
	f, ok := number(v)
	if f = math.Floor(f); !ok || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// appendString writes a JSON string with the shortest escapes. Invalid UTF-8 becomes U+FFFD.
func appendString(buf []byte, s string) []byte {
	buf, _ = jsontext.AppendQuote(buf, s) // reports invalid UTF-8 after replacing it
	return buf
}

// number converts a leaf to a finite number.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		return f, err == nil
	case float64:
		return v, finite(v)
	case *float64:
		return *v, finite(*v)
	case int64:
		return float64(v), true
	case *int64:
		return float64(*v), true
	case int:
		return float64(v), true
	}
	return 0, false
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }
