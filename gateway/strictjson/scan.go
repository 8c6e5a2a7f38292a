package strictjson

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// scanner validates texts by the same rules as decode, but does not create values. It reports no detailed errors: if it rejects a text,
// decode decodes the text and may still accept it.
//
// Functions that scan a token take the offset of its first byte and return the offset after it, or -1 if the text is
// rejected.
type scanner struct {
	data []byte
	lim  Limits
	// members receives the members of the outermost object if keepsMembers is set. In that case, and with
	// Limits.UncountedNumbers, numbers in lists of the member free are not counted, or in any list if free is empty.
	members      []outermost
	keepsMembers bool
	free         string
	// outline, if not nil, receives the positions of the values.
	outline *outlined
	// stop is the offset of the last value or name before the scanner rejected the text. why is the kind of the error.
	stop int
	why  Code
	// escaped is true if a member name has escapes.
	escaped bool

	// open holds the containers around the innermost one, outermost first.
	open []container
	// names holds the names of the open objects, outermost first.
	names []span
}

// outermost is a member of the outermost object.
type outermost struct {
	name  string
	value []byte
}

// container is an open array or object.
type container struct {
	object bool
	// first is the index of the object's first name in scanner.names.
	first int
	// node is the container's index in an outline.
	node int
	// seen has the bits of all names; several names can share a bit.
	seen uint64
	// set holds the names of an object with many members, or with names that have escapes; otherwise it is nil.
	set map[string]struct{}
}

// span is a part of the text.
type span struct{ from, to int }

// fewNames is the maximum number of names of an object that are compared one by one.
const fewNames = 32

// document scans a whole text. It is a single loop, because a function call for each value would cost as much as scanning
// it.
func (s *scanner) document() bool {
	b, i := s.data, space(s.data, 0)
	var in container // the innermost container
	var name, from int
	lists := false // do not count numbers in lists
	for depth, values := 0, 0; ; {
		var key span
		s.stop = i
		if in.object {
			if key, i = s.name(i, &in); i < 0 {
				return false
			}
			if depth == 1 {
				name, from = key.from-1, i
				lists = s.keepsMembers && s.lim.UncountedNumbers && (s.free == "" || string(b[key.from:key.to]) == s.free)
			}
		}
		c := at(b, i)
		if !lists || in.object || depth < 2 || c != '-' && c-'0' > 9 {
			if values++; values > s.lim.Values {
				s.stop, s.why = i, CodeValues
				return false
			}
		}
		node, plain := values-1, true
		if s.outline != nil {
			s.outline.begin(key, i)
		}
		switch c {
		case '{', '[':
			if depth >= s.lim.Depth {
				s.why = CodeDepth
				return false
			}
			if i = space(b, i+1); at(b, i) != end(c) {
				s.open = append(s.open, in)
				in = container{object: c == '{', first: len(s.names), node: node}
				depth++
				continue
			}
			i++ // empty container
		case '"':
			i, plain = str(b, i)
		case 't':
			i = literal(b, i, "true")
		case 'f':
			i = literal(b, i, "false")
		case 'n':
			i = literal(b, i, "null")
		default:
			if next := at(b, i+1); c-'0' <= 9 && (next == ',' || next == ']' || next == '}') {
				i++ // fast path: a single digit
			} else {
				i = number(b, i, &s.lim)
			}
		}
		if i < 0 {
			return false
		}
		if s.outline != nil {
			s.outline.end(node, i, plain)
		}
		for { // A value ends at i, and perhaps one or more containers.
			if depth == 0 {
				return space(b, i) == len(b)
			}
			if depth == 1 && in.object && s.keepsMembers {
				s.members = append(s.members, outermost{s.spelled(name), b[from:i]})
			}
			i = space(b, i)
			c := at(b, i)
			if c == ',' {
				i = space(b, i+1)
				break
			}
			if in.object && c != '}' || !in.object && c != ']' {
				return false
			}
			i++
			if s.outline != nil {
				s.outline.end(in.node, i, true)
			}
			s.names = s.names[:in.first]
			depth--
			in = s.open[depth]
			s.open = s.open[:depth]
		}
	}
}

// end returns the closing byte of a container that begins with c.
func end(c byte) byte { return c + 2 } // ']' is '[' + 2 and '}' is '{' + 2

// at returns the byte at i, or 0 after the end. No token begins with 0.
func at(b []byte, i int) byte {
	if uint(i) < uint(len(b)) { // one comparison instead of two
		return b[i]
	}
	return 0
}

// space returns the offset of the first byte at or after i that is not white space.
func space(b []byte, i int) int {
	if at(b, i) > ' ' {
		return i
	}
	return spaces(b, i)
}

func spaces(b []byte, i int) int {
	const spaces = 1<<' ' | 1<<'\n' | 1<<'\r' | 1<<'\t'
	for i < len(b) && b[i] <= ' ' && spaces>>b[i]&1 != 0 {
		i++
	}
	return i
}

func literal(b []byte, i int, word string) int {
	if end := i + len(word); end <= len(b) && string(b[i:end]) == word {
		return end
	}
	return -1
}

// name scans a member name at i and the colon, and returns the name and the offset of the value.
func (s *scanner) name(i int, in *container) (name span, value int) {
	b := s.data
	if at(b, i) != '"' {
		return span{}, -1
	}
	end, plain := str(b, i)
	if end < 0 {
		return span{}, -1
	}
	name = span{i + 1, end - 1}
	s.escaped = s.escaped || !plain
	var first bool
	if plain && in.set == nil {
		first = s.add(name, in)
	} else {
		first = s.addSpelled(i, in)
	}
	if !first {
		s.why = CodeDuplicate
		return span{}, -1
	}
	if i = space(b, end); at(b, i) != ':' {
		return span{}, -1
	}
	return name, space(b, i+1)
}

// add records a name of an object. It returns false if the name is a duplicate.
func (s *scanner) add(name span, in *container) bool {
	known := s.names[in.first:]
	bit := s.bit(name)
	if in.seen&bit != 0 {
		for _, k := range known {
			if k.to-k.from == name.to-name.from && string(s.data[k.from:k.to]) == string(s.data[name.from:name.to]) {
				return false
			}
		}
	}
	if len(known) == fewNames {
		return s.addSpelled(name.from-1, in)
	}
	in.seen |= bit
	s.names = append(s.names, name)
	return true
}

// bit returns the bit of a name in container.seen.
func (s *scanner) bit(name span) uint64 {
	n := name.to - name.from
	if n == 0 {
		return 1
	}
	return 1 << (uint(n*7+int(s.data[name.from])*5+int(s.data[name.to-1])*3) % 64)
}

// addSpelled is like add for the quoted name at i, and uses a set.
func (s *scanner) addSpelled(i int, in *container) bool {
	if in.set == nil {
		in.set = make(map[string]struct{}, 2*fewNames)
		for _, k := range s.names[in.first:] {
			in.set[s.spelled(k.from-1)] = struct{}{}
		}
	}
	before := len(in.set)
	in.set[s.spelled(i)] = struct{}{}
	return len(in.set) > before
}

// spelled returns the scanned string at i.
func (s *scanner) spelled(i int) string {
	end, plain := str(s.data, i)
	spelled := s.data[i+1 : end-1]
	if !plain {
		spelled, _ = jsontext.AppendUnquote(nil, s.data[i:end]) // validated by str
	}
	return unsafe.String(unsafe.SliceData(spelled), len(spelled)) //nolint:gosec // as in DecodeInPlace
}

// Masks for eight bytes in one word: 0x01 in each byte, and the highest bit of each byte.
const (
	eachByte = 0x0101010101010101
	highBits = 0x80 * eachByte
)

// str scans the string at i. plain reports whether it has no escapes.
func str(b []byte, i int) (end int, plain bool) {
	seen := uint64(0)
	from := i + 1
	plain = true
	for i = from; ; {
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			// The lowest set bit marks the first byte that is below 0x20, a quote, or a backslash. The first two are the
			// bytes that differ from 0x02 by less than 0x21. Higher bits may be wrong because of borrows.
			found := ((w ^ 0x02*eachByte - 0x21*eachByte) | (w ^ '\\'*eachByte - eachByte)) &^ w & highBits
			if found != 0 {
				n := bits.TrailingZeros64(found) / 8
				seen |= w & (1<<(8*n) - 1)
				i += n
				break
			}
			seen |= w
			i += 8
		}
		switch c := at(b, i); {
		case c == '"':
			if seen&highBits != 0 && !utf8.Valid(b[from:i]) {
				return -1, false
			}
			return i + 1, plain
		case c == '\\':
			if i = escape(b, i); i < 0 {
				return -1, false
			}
			plain = false
		case c < 0x20: // includes the end of the text
			return -1, false
		default:
			seen |= uint64(c)
			i++
		}
	}
}

// escape scans the escape sequence at i.
func escape(b []byte, i int) int {
	switch at(b, i+1) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
	default:
		return -1
	}
	const long = len(`\u0000`)
	first, ok := unit(b, i)
	switch {
	case !ok:
		return -1
	case !utf16.IsSurrogate(first):
		return i + long
	}
	if second, ok := unit(b, i+long); ok && utf16.DecodeRune(first, second) != utf8.RuneError {
		return i + 2*long
	}
	return -1
}

// unit decodes the \u escape sequence at i.
func unit(b []byte, i int) (rune, bool) {
	if at(b, i) != '\\' || at(b, i+1) != 'u' || len(b)-i < len(`\u0000`) {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[i+2:i+6]), 16, 16)
	return rune(n), err == nil
}

// number scans the number at i.
func number(b []byte, i int, l *Limits) int {
	from := i
	if at(b, i) == '-' {
		i++
	}
	first := i
	if i = digits(b, i); i == first || i > first+1 && b[first] == '0' {
		return -1
	}
	if at(b, i) == '.' {
		after := digits(b, i+1)
		if after == i+1 {
			return -1
		}
		i = after
	}
	if at(b, i)|0x20 == 'e' {
		if i++; at(b, i) == '+' || at(b, i) == '-' {
			i++
		}
		after := digits(b, i)
		if exponent, err := strconv.Atoi(string(b[i:after])); err != nil || exponent > l.Exponent {
			return -1
		}
		i = after
	}
	if i-from > l.NumberChars {
		return -1
	}
	return i
}

func digits(b []byte, i int) int {
	for uint(i) < uint(len(b)) && b[i]-'0' <= 9 {
		i++
	}
	return i
}
