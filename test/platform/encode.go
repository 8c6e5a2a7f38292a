package platform

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// object is the members of a JSON object: names, each followed by its value.
type object []any

// optional is text that is null where it is empty.
type optional string

// objects are the objects of a list, each made when it is written.
func objects[T any](list []T, one func(T) object) iter.Seq[object] {
	return func(yield func(object) bool) {
		for _, v := range list {
			if !yield(one(v)) {
				return
			}
		}
	}
}

func (o object) append(b []byte) []byte {
	b = append(b, '{')
	for i := 0; i < len(o); i += 2 {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, o[i].(string)), ':')
		b = appendValue(b, o[i+1])
	}
	return append(b, '}')
}

// appendValue writes a value as JSON. Numbers with a fraction are rounded to nine digits after the point, which is finer
// than any amount of money here and hides what binary fractions leave behind.
func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case string:
		return appendText(b, v)
	case optional:
		if v == "" {
			return append(b, "null"...)
		}
		return appendText(b, string(v))
	case int:
		return strconv.AppendInt(b, int64(v), 10)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case bool:
		return strconv.AppendBool(b, v)
	case float64:
		return strconv.AppendFloat(b, math.Round(v*1e9)/1e9+0, 'f', -1, 64) // no negative zero
	case time.Time:
		if v.IsZero() {
			return append(b, "null"...)
		}
		return appendText(b, stamp(v))
	case []string:
		return appendArray(b, slices.Values(v))
	case map[string]string:
		var o object
		for _, name := range slices.Sorted(maps.Keys(v)) {
			o = append(o, name, v[name])
		}
		return o.append(b)
	case []object:
		return appendArray(b, slices.Values(v))
	case iter.Seq[object]:
		return appendArray(b, v)
	case object:
		return v.append(b)
	case json.RawMessage:
		return append(b, v...)
	default:
		panic(fmt.Sprintf("platform: no JSON of %T", v))
	}
}

// appendText writes s as a JSON string, replacing what is not UTF-8.
func appendText(b []byte, s string) []byte {
	special := func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }
	if strings.ContainsFunc(s, special) {
		b, _ = jsontext.AppendQuote(b, s) // reports what is not UTF-8 after it has replaced it
		return b
	}
	return append(append(append(b, '"'), s...), '"') // as most texts, in half the time
}

func appendArray[T any](b []byte, list iter.Seq[T]) []byte {
	b = append(b, '[')
	for v := range list {
		if b[len(b)-1] != '[' {
			b = append(b, ',')
		}
		b = appendValue(b, v)
	}
	return append(b, ']')
}
