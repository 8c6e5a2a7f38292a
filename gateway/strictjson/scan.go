package strictjson

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// scanner accepts texts as decode does, without making values of them. It gives no
// reasons: what it does not accept is left to decode, which may still accept it.
//
// Its methods take the offset of a token and return that of the first byte behind
// it, -1 for a text that is not accepted.
type scanner struct {
	// data and text are the same bytes.
	data   []byte
	text   string
	lim    Limits
	values int
	// names are those of the objects now open, outermost first.
	names []string
	// visit, if not nil, is called for each member of the outermost object with its
	// name, and the offsets of its value.
	visit func(name string, from, to int)
}

// fewNames is how many names of an object are compared one by one.
const fewNames = 16

// document scans a whole text.
func (s *scanner) document() bool {
	i := s.value(s.space(0), 0)
	return i >= 0 && s.space(i) == len(s.text)
}

// at returns the byte at i, 0 behind the end, which begins no token.
func (s *scanner) at(i int) byte {
	if i < len(s.text) {
		return s.text[i]
	}
	return 0
}

func (s *scanner) space(i int) int {
	const spaces = 1<<' ' | 1<<'\n' | 1<<'\r' | 1<<'\t'
	for i < len(s.text) && s.text[i] <= ' ' && spaces>>s.text[i]&1 != 0 {
		i++
	}
	return i
}

// value scans the value at i; depth containers are open around it.
func (s *scanner) value(i, depth int) int {
	if s.values++; s.values > s.lim.Values {
		return -1
	}
	switch c := s.at(i); c {
	case '"':
		end, _ := s.str(i)
		return end
	case '{':
		if depth >= s.lim.Depth {
			return -1
		}
		return s.object(i, depth+1)
	case '[':
		if depth >= s.lim.Depth {
			return -1
		}
		return s.array(i, depth+1)
	case 't':
		return s.literal(i, "true")
	case 'f':
		return s.literal(i, "false")
	case 'n':
		return s.literal(i, "null")
	default:
		return s.number(i)
	}
}

func (s *scanner) literal(i int, word string) int {
	if end := i + len(word); end <= len(s.text) && s.text[i:end] == word {
		return end
	}
	return -1
}

func (s *scanner) array(i, depth int) int {
	if i = s.space(i + 1); s.at(i) == ']' {
		return i + 1
	}
	for {
		if i = s.value(i, depth); i < 0 {
			return -1
		}
		switch i = s.space(i); s.at(i) {
		case ',':
			i = s.space(i + 1)
		case ']':
			return i + 1
		default:
			return -1
		}
	}
}

func (s *scanner) object(i, depth int) int {
	if i = s.space(i + 1); s.at(i) == '}' {
		return i + 1
	}
	o := openObject{first: len(s.names)}
	for {
		if s.at(i) != '"' {
			return -1
		}
		name, next := s.name(i)
		if next < 0 || !o.add(s, name) {
			return -1
		}
		if i = s.space(next); s.at(i) != ':' {
			return -1
		}
		from := s.space(i + 1)
		if i = s.value(from, depth); i < 0 {
			return -1
		}
		if depth == 1 && s.visit != nil {
			s.visit(name, from, i)
		}
		switch i = s.space(i); s.at(i) {
		case ',':
			i = s.space(i + 1)
		case '}':
			s.names = s.names[:o.first]
			return i + 1
		default:
			return -1
		}
	}
}

// openObject is an object of which some members were read. Their names begin at
// first in those of the scanner; of many, they are in a set.
type openObject struct {
	first int
	set   map[string]struct{}
}

// add notes a name. It reports whether it is the first of its kind.
func (o *openObject) add(s *scanner, name string) bool {
	if o.set != nil {
		before := len(o.set)
		o.set[name] = struct{}{}
		return len(o.set) > before
	}
	if slices.Contains(s.names[o.first:], name) {
		return false
	}
	s.names = append(s.names, name)
	if known := s.names[o.first:]; len(known) == fewNames {
		o.set = make(map[string]struct{}, 2*fewNames)
		for _, n := range known {
			o.set[n] = struct{}{}
		}
	}
	return true
}

// Eight bytes at a time: a byte in each, and the highest bit of each.
const (
	eachByte = 0x0101010101010101
	highBits = 0x80 * eachByte
)

// str scans the string at i. plain reports whether it stands for itself, without
// escapes.
func (s *scanner) str(i int) (end int, plain bool) {
	data, seen := s.data, uint64(0)
	from := i + 1
	plain = true
	for i = from; ; {
		for len(data)-i >= 8 {
			w := binary.LittleEndian.Uint64(data[i:])
			quote, slash := w^'"'*eachByte, w^'\\'*eachByte
			// The lowest bit that is set is that of the first byte below 0x20, or
			// equal to a quote or a backslash; above it, borrows may set others.
			found := (w-0x20*eachByte)&^w | (quote-eachByte)&^quote | (slash-eachByte)&^slash
			if found &= highBits; found != 0 {
				n := bits.TrailingZeros64(found) / 8
				seen |= w & (1<<(8*n) - 1)
				i += n
				break
			}
			seen |= w
			i += 8
		}
		switch c := s.at(i); {
		case c == '"':
			if seen&highBits != 0 && !utf8.Valid(data[from:i]) {
				return -1, false
			}
			return i + 1, plain
		case c == '\\':
			if i = s.escape(i); i < 0 {
				return -1, false
			}
			plain = false
		case c < 0x20: // the end of the text is one of these
			return -1, false
		default:
			seen |= uint64(c)
			i++
		}
	}
}

// escape scans the escape at i.
func (s *scanner) escape(i int) int {
	if s.at(i+1) != 'u' {
		if strings.IndexByte(`"\/bfnrt`, s.at(i+1)) < 0 {
			return -1
		}
		return i + 2
	}
	const long = len(`\u0000`)
	first, ok := s.unit(i)
	switch {
	case !ok:
		return -1
	case !utf16.IsSurrogate(first):
		return i + long
	}
	if second, ok := s.unit(i + long); ok && utf16.DecodeRune(first, second) != utf8.RuneError {
		return i + 2*long
	}
	return -1
}

// unit reads the escape at i that spells a UTF-16 code unit.
func (s *scanner) unit(i int) (rune, bool) {
	if s.at(i) != '\\' || s.at(i+1) != 'u' || len(s.text)-i < len(`\u0000`) {
		return 0, false
	}
	n, err := strconv.ParseUint(s.text[i+2:i+6], 16, 16)
	return rune(n), err == nil
}

// name scans the name of a member at i and returns what it spells.
func (s *scanner) name(i int) (string, int) {
	end, plain := s.str(i)
	switch {
	case end < 0:
		return "", -1
	case plain:
		return s.text[i+1 : end-1], end
	}
	spelled, err := jsontext.AppendUnquote(nil, s.data[i:end])
	if err != nil {
		return "", -1
	}
	return string(spelled), end
}

// number scans the number at i.
func (s *scanner) number(i int) int {
	from := i
	if s.at(i) == '-' {
		i++
	}
	switch c := s.at(i); {
	case c == '0':
		i++
	case '1' <= c && c <= '9':
		i = s.digits(i)
	default:
		return -1
	}
	if s.at(i) == '.' {
		after := s.digits(i + 1)
		if after == i+1 {
			return -1
		}
		i = after
	}
	if c := s.at(i); c == 'e' || c == 'E' {
		if i++; s.at(i) == '+' || s.at(i) == '-' {
			i++
		}
		after := s.digits(i)
		if exponent, err := strconv.Atoi(s.text[i:after]); err != nil || exponent > s.lim.Exponent {
			return -1
		}
		i = after
	}
	if i-from > s.lim.NumberChars {
		return -1
	}
	return i
}

func (s *scanner) digits(i int) int {
	for i < len(s.text) && '0' <= s.text[i] && s.text[i] <= '9' {
		i++
	}
	return i
}
