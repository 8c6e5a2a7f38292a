package strictjson

import (
	"io"
	"slices"
	"unicode/utf8"
)

// Write writes the canonical form of v, as Append does, without holding all of it in memory. It returns the errors of
// Append and of w.
func Write(w io.Writer, v any) error {
	p := &pieces{w: w, buf: make([]byte, 0, 2*piece)}
	if err := p.value(v, 0); err != nil {
		return err
	}
	return p.flush()
}

// piece is the number of bytes that are collected before they are written.
const piece = 16 << 10

// pieces collects small values and writes them together.
type pieces struct {
	w   io.Writer
	buf []byte
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
	case string:
		err = p.string(v)
	case *Raw:
		err = p.raw(v.data)
	default:
		p.buf, err = appendValue(p.buf, v, depth)
	}
	if err == nil && len(p.buf) >= piece {
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
	names := make([]string, 0, len(m))
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
	if len(text) < piece {
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
	p.buf = append(p.buf, '"')
	for len(s) > 0 {
		n := min(len(s), piece)
		for n < len(s) && n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		if n == 0 {
			n = len(s) // invalid UTF-8, which appendString reports
		}
		at := len(p.buf)
		quoted, err := appendString(p.buf, s[:n])
		if err != nil {
			return err
		}
		// Remove the quotes around the part.
		copy(quoted[at:], quoted[at+1:len(quoted)-1])
		p.buf = quoted[:len(quoted)-2]
		if s = s[n:]; len(s) > 0 {
			if err := p.flush(); err != nil {
				return err
			}
		}
	}
	p.buf = append(p.buf, '"')
	return nil
}
