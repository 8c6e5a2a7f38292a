package graphql

import (
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/translate"
)

// appendScalar writes a leaf by the type the schema gives it. Integers have
// neither fraction nor exponent, because clients decode them into integers; a
// value of another kind than declared is null.
func appendScalar(buf []byte, typ string, v any) []byte {
	switch typ {
	case "Int":
		if n, ok := whole(v); ok {
			return strconv.AppendInt(buf, n, 10)
		}
		return append(buf, "null"...)
	case "Float":
		if f, ok := translate.Number(v); ok {
			return strconv.AppendFloat(buf, f, 'f', -1, 64)
		}
		return append(buf, "null"...)
	case "Boolean":
		if b, ok := v.(bool); ok {
			return strconv.AppendBool(buf, b)
		}
		return append(buf, "null"...)
	}
	if s, ok := v.(string); ok {
		return appendString(buf, s)
	}
	return append(buf, "null"...)
}

func whole(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case int:
		return int64(v), true
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, true
		}
	}
	f, ok := translate.Number(v)
	if f = math.Floor(f); !ok || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

const hexDigits = "0123456789abcdef"

// appendString writes a JSON string. Nothing but what RFC 8259 section 7
// demands is escaped, so text comes back as it was sent; bytes that are not
// UTF-8 become U+FFFD.
func appendString(buf []byte, s string) []byte {
	buf = append(buf, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			buf = append(buf, '\\', c)
		case c == '\n':
			buf = append(buf, '\\', 'n')
		case c < 0x20:
			buf = append(buf, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
		case c < utf8.RuneSelf:
			buf = append(buf, c)
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			buf = utf8.AppendRune(buf, r)
			i += size
			continue
		}
		i++
	}
	return append(buf, '"')
}

// located is a fault with the place in the answer that is null because of it.
type located struct {
	*fault
	path []any // string keys and int indexes
}

func appendErrors(buf []byte, faults []located) []byte {
	buf = append(buf, '[')
	for i, f := range faults {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = f.append(buf)
	}
	return append(buf, ']')
}

func (f located) append(buf []byte) []byte {
	buf = append(buf, `{"message":`...)
	buf = appendString(buf, f.message)
	if f.line > 0 {
		buf = append(buf, `,"locations":[{"line":`...)
		buf = strconv.AppendInt(buf, int64(f.line), 10)
		buf = append(buf, `,"column":`...)
		buf = strconv.AppendInt(buf, int64(f.col), 10)
		buf = append(buf, `}]`...)
	}
	if f.path != nil {
		buf = append(buf, `,"path":[`...)
		for i, p := range f.path {
			if i > 0 {
				buf = append(buf, ',')
			}
			switch p := p.(type) {
			case string:
				buf = appendString(buf, p)
			case int:
				buf = strconv.AppendInt(buf, int64(p), 10)
			}
		}
		buf = append(buf, ']')
	}
	buf = append(buf, `,"extensions":`...)
	buf = f.appendExtensions(buf)
	return append(buf, '}')
}

func (f *fault) appendExtensions(buf []byte) []byte {
	buf = append(buf, `{"code":`...)
	buf = appendString(buf, f.code)
	if f.status != 0 {
		buf = append(buf, `,"status":`...)
		buf = strconv.AppendInt(buf, int64(f.status), 10)
	}
	for _, m := range [...]struct{ name, value string }{
		{"policy", f.policy}, {"decision", f.decision}, {"limit", f.limit},
	} {
		if m.value != "" {
			buf = append(buf, `,"`...)
			buf = append(buf, m.name...)
			buf = append(buf, `":`...)
			buf = appendString(buf, m.value)
		}
	}
	if len(f.errors) > 0 {
		buf = append(buf, `,"errors":[`...)
		for i, e := range f.errors {
			if i > 0 {
				buf = append(buf, ',')
			}
			buf = appendString(buf, e)
		}
		buf = append(buf, ']')
	}
	return append(buf, '}')
}
