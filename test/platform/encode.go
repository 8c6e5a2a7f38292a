package platform

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// The answers are written by hand: the emulator is the upstream in benchmarks,
// where reflection would be most of what is measured.

// appendText writes s as a JSON string, replacing what is not UTF-8.
func appendText(b []byte, s string) []byte {
	special := func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }
	if strings.ContainsFunc(s, special) {
		b, _ = jsontext.AppendQuote(b, s) // reports what is not UTF-8 after it has replaced it
		return b
	}
	return append(append(append(b, '"'), s...), '"') // as most texts, in half the time
}

// appendArray writes list as an array; nil is an empty one.
func appendArray[T any](b []byte, list []T, one func([]byte, T) []byte) []byte {
	b = append(b, '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(b, v)
	}
	return append(b, ']')
}

func appendTexts(b []byte, list []string) []byte { return appendArray(b, list, appendText) }

// appendTextOrNull writes null for the empty string.
func appendTextOrNull(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return appendText(b, s)
}

// appendMap writes m as an object with its names in order.
func appendMap(b []byte, m map[string]string) []byte {
	b = append(b, '{')
	for i, name := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, name), ':')
		b = appendText(b, m[name])
	}
	return append(b, '}')
}

// object is the members of a JSON object: names, each followed by its value. It is the
// short form for records that no benchmark reads.
type object []any

// optional is text that is null where it is empty.
type optional string

func (o object) append(b []byte) []byte { return append(o.members(append(b, '{')), '}') }

// members appends the members to an object that is still open.
func (o object) members(b []byte) []byte {
	for i := 0; i < len(o); i += 2 {
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(appendText(b, o[i].(string)), ':')
		b = appendValue(b, o[i+1])
	}
	return b
}

func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case string:
		return appendText(b, v)
	case optional:
		return appendTextOrNull(b, string(v))
	case int, int64, bool:
		return fmt.Append(b, v)
	case float64:
		return appendNumber(b, v)
	case time.Time:
		return appendTimeOrNull(b, v)
	case []string:
		return appendTexts(b, v)
	case map[string]string:
		return appendMap(b, v)
	case []object:
		return appendArray(b, v, func(b []byte, o object) []byte { return o.append(b) })
	case object:
		return v.append(b)
	case json.RawMessage:
		return append(b, v...)
	default:
		panic(fmt.Sprintf("platform: no JSON of %T", v))
	}
}

// appendNumber writes f rounded to nine digits after the point, which is finer
// than any amount of money here and hides what binary fractions leave behind.
func appendNumber(b []byte, f float64) []byte {
	f = math.Round(f*1e9) / 1e9
	if f == 0 {
		f = 0 // no negative zero
	}
	return strconv.AppendFloat(b, f, 'f', -1, 64)
}

func appendInt[T int | int64](b []byte, n T) []byte { return strconv.AppendInt(b, int64(n), 10) }

// appendTime writes t as a quoted time stamp.
func appendTime(b []byte, t time.Time) []byte {
	b = append(b, '"')
	b = append(b, stamp(t)...)
	return append(b, '"')
}

// appendTimeOrNull writes null for the zero time.
func appendTimeOrNull(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, "null"...)
	}
	return appendTime(b, t)
}
