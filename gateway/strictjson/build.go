package strictjson

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"unsafe"
)

// builder decodes texts in one pass. It reports no errors: if it rejects a text, findError finds the error.
type builder struct {
	data []byte
	// text is data as a string. Strings without escapes are parts of text and need no allocation, unless separate is set.
	text     string
	separate bool
	lim      Limits
	values   int
	full     int // offset of the first value beyond the limit, or 0

	// members and items hold the contents of the open containers, outermost first. A map or array is allocated once its
	// size is known.
	members []member
	items   []any
	// block holds the bytes of strings that are not parts of text.
	block []byte
}

// member is a member of an open object.
type member struct {
	name  string
	value any
}

// builders recycles the members and items buffers.
var builders = sync.Pool{New: func() any { return new(builder) }}

// document decodes a whole text.
func (p *builder) document() (v any, ok bool) {
	room := builders.Get().(*builder)
	p.members, p.items = room.members[:0], room.items[:0]
	v, end := p.value(space(p.data, 0), 0)
	if cap(p.members)+cap(p.items) <= 512 { // larger buffers are rarely needed
		room.members, room.items = p.members[:cap(p.members)], p.items[:cap(p.items)]
		clear(room.members)
		clear(room.items)
		builders.Put(room)
	}
	return v, end >= 0 && space(p.data, end) == len(p.data)
}

// value decodes the value at i inside depth open containers. It returns the offset after the value, or -1 if the text is
// rejected.
func (p *builder) value(i, depth int) (v any, end int) {
	if p.values++; p.values > p.lim.Values {
		p.full = i
		return nil, -1
	}
	switch at(p.data, i) {
	case '{':
		return p.object(i, depth+1)
	case '[':
		return p.array(i, depth+1)
	case '"':
		s, end := p.string(i)
		if end < 0 || !p.lim.AllowControls && strings.IndexByte(s, 0) >= 0 {
			return nil, -1
		}
		return s, end
	case 't':
		return true, literal(p.data, i, "true")
	case 'f':
		return false, literal(p.data, i, "false")
	case 'n':
		return nil, literal(p.data, i, "null")
	}
	if end = number(p.data, i, &p.lim); end < 0 {
		return nil, -1
	}
	s := p.part(i, end)
	if p.lim.NormalizeIntegers {
		s = plain(s)
	}
	return json.Number(s), end
}

func (p *builder) object(i, depth int) (v any, end int) {
	if depth > p.lim.Depth {
		return nil, -1
	}
	first := len(p.members)
	if i = space(p.data, i+1); at(p.data, i) == '}' {
		return map[string]any{}, i + 1
	}
	for {
		name, end := p.name(i)
		if end < 0 {
			return nil, -1
		}
		value, end := p.value(end, depth)
		if end < 0 {
			return nil, -1
		}
		p.members = append(p.members, member{name, value})
		i = space(p.data, end)
		switch at(p.data, i) {
		case ',':
			i = space(p.data, i+1)
		case '}':
			v, ok := p.close(first)
			if !ok {
				return nil, -1
			}
			return v, i + 1
		default:
			return nil, -1
		}
	}
}

// close creates the object with the members from first on. ok is false if two members have the same name.
func (p *builder) close(first int) (m map[string]any, ok bool) {
	members := p.members[first:]
	m = make(map[string]any, len(members))
	for _, c := range members {
		m[c.name] = c.value
	}
	p.members = p.members[:first]
	return m, len(m) == len(members)
}

// name decodes a member name at i and returns the offset of the value.
func (p *builder) name(i int) (name string, end int) {
	if at(p.data, i) != '"' {
		return "", -1
	}
	name, end = p.string(i)
	if end < 0 || !p.lim.AllowControls && strings.ContainsFunc(name, isControl) {
		return "", -1
	}
	if end = space(p.data, end); at(p.data, end) != ':' {
		return "", -1
	}
	return name, space(p.data, end+1)
}

func (p *builder) array(i, depth int) (v any, end int) {
	if depth > p.lim.Depth {
		return nil, -1
	}
	first := len(p.items)
	if i = space(p.data, i+1); at(p.data, i) == ']' {
		return []any{}, i + 1
	}
	for {
		item, end := p.value(i, depth)
		if end < 0 {
			return nil, -1
		}
		p.items = append(p.items, item)
		i = space(p.data, end)
		switch at(p.data, i) {
		case ',':
			i = space(p.data, i+1)
		case ']':
			items := slices.Clone(p.items[first:])
			p.items = p.items[:first]
			return items, i + 1
		default:
			return nil, -1
		}
	}
}

// string decodes the string at i.
func (p *builder) string(i int) (s string, end int) {
	end, plain := str(p.data, i)
	switch {
	case end < 0:
		return "", -1
	case plain:
		return p.part(i+1, end-1), end
	}
	s, err := unquote(p.data[i:end])
	if err != nil {
		return "", -1
	}
	return s, end
}

// Strings of up to maxShort bytes that are not parts of the text share blocks of blockSize bytes, so that retaining one
// of them retains at most one block.
const (
	maxShort  = 128
	blockSize = 1 << 10
)

// part returns a part of the text as a string.
func (p *builder) part(from, to int) string {
	switch n := to - from; {
	case !p.separate:
		return p.text[from:to]
	case n > maxShort:
		return string(p.data[from:to])
	case n > cap(p.block)-len(p.block):
		p.block = make([]byte, 0, min(blockSize, len(p.data)-from))
	}
	n := len(p.block)
	p.block = append(p.block, p.data[from:to]...)
	s := p.block[n:]
	return unsafe.String(unsafe.SliceData(s), len(s)) //nolint:gosec // the contents of a block do not change
}
