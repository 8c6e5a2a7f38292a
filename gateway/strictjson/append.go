package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrDepth is returned by [Append] if a value is nested more than 1000 levels deep or contains itself. [Decode] does not return such
// values.
var ErrDepth = errors.New("strictjson: value is nested too deeply")

const appendDepth = 1000

// Append appends the canonical form of v to dst. The canonical form contains no white space, members are sorted by the bytes of their
// names, strings have the shortest escapes and no HTML escaping, and numbers have their original spelling. v may contain the types that
// [Decode] returns. If v contains another type, an invalid number or invalid UTF-8, Append returns an error and dst unchanged.
func Append(dst []byte, v any) ([]byte, error) {
	p := pieces{buf: dst, size: math.MaxInt}
	if err := p.value(v, 0); err != nil {
		return dst, err
	}
	return p.buf, nil
}

// Write writes the canonical form of v, as defined at [Append], to w. It does not hold the complete form in memory. It returns the errors
// that Append would return, and errors of w.
func Write(w io.Writer, v any) error {
	p := pieces{w: w, size: piece, buf: make([]byte, 0, 2*piece)}
	if err := p.value(v, 0); err != nil {
		return err
	}
	return p.flush()
}

// piece is the number of bytes that Write collects before it writes them.
const piece = 16 << 10

// pieces encodes values in their canonical form. It collects small values in buf and writes about size bytes together.
type pieces struct {
	w    io.Writer // nil if size exceeds every value
	size int
	buf  []byte
}

func (p *pieces) flush() error {
	_, err := p.w.Write(p.buf)
	p.buf = p.buf[:0]
	return err
}

func (p *pieces) value(v any, depth int) (err error) {
	if depth > appendDepth {
		return ErrDepth
	}
	switch v := v.(type) {
	case []any:
		return p.array(v, depth)
	case map[string]any:
		return p.object(v, depth)
	case nil:
		p.buf = append(p.buf, "null"...)
	case bool:
		p.buf = strconv.AppendBool(p.buf, v)
	case string:
		err = p.string(v)
	case json.Number:
		if !isNumber(string(v)) {
			return fmt.Errorf("strictjson: %s is not a JSON number", quoted(string(v)))
		}
		p.buf = append(p.buf, v...)
	case *Raw:
		err = p.raw(v.data)
	default:
		return fmt.Errorf("strictjson: cannot write a value of type %T", v)
	}
	if err == nil && len(p.buf) >= p.size {
		err = p.flush()
	}
	return err
}

func (p *pieces) array(items []any, depth int) error {
	p.buf = append(p.buf, '[')
	for i, item := range items {
		if i > 0 {
			p.buf = append(p.buf, ',')
		}
		if err := p.value(item, depth+1); err != nil {
			return err
		}
	}
	p.buf = append(p.buf, ']')
	return nil
}

func (p *pieces) object(m map[string]any, depth int) error {
	var few [16]string // avoids an allocation for small objects
	names := few[:0]
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	p.buf = append(p.buf, '{')
	for i, name := range names {
		if i > 0 {
			p.buf = append(p.buf, ',')
		}
		if err := p.string(name); err != nil {
			return err
		}
		p.buf = append(p.buf, ':')
		if err := p.value(m[name], depth+1); err != nil {
			return err
		}
	}
	p.buf = append(p.buf, '}')
	return nil
}

// raw writes a text. It does not copy a large one.
func (p *pieces) raw(text []byte) error {
	if len(text) < p.size {
		p.buf = append(p.buf, text...)
		return nil
	}
	if err := p.flush(); err != nil {
		return err
	}
	_, err := p.w.Write(text)
	return err
}

// string writes a string in parts. The escaping of a character does not depend on its neighbours.
func (p *pieces) string(s string) error {
	for first := true; ; first = false {
		n := min(len(s), p.size)
		for n < len(s) && n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		if n == 0 {
			n = len(s) // invalid UTF-8, which AppendQuote reports
		}
		from := len(p.buf)
		buf, err := jsontext.AppendQuote(p.buf, s[:n])
		if err != nil {
			return fmt.Errorf("strictjson: write the string %s: %w", quoted(s[:n]), err)
		}
		if !first { // the opening quote belongs to the first part, the closing quote to the last
			buf = slices.Delete(buf, from, from+1)
		}
		p.buf = buf
		if s = s[n:]; s == "" {
			return nil
		}
		p.buf = buf[:len(buf)-1]
		if err := p.flush(); err != nil {
			return err
		}
	}
}

// isNumber reports whether s matches the number grammar of RFC 8259, section 6.
func isNumber(s string) bool {
	return number([]byte(s), 0, &Limits{NumberChars: math.MaxInt, Exponent: math.MaxInt}) == len(s)
}
