package money

import "bytes"

// shortener reads JSON text and limits the length of its tokens, which bounds the memory that the decoder needs. Cut strings remain
// strings. Cut numbers remain too large to be valid counts.
type shortener struct {
	in source

	inString, escaped bool
	// hex is the number of remaining digits of a \u escape.
	hex int
	// length counts the bytes of the current string, literal, number or white space.
	length int
	space  bool
}

const (
	// maxString is the number of bytes of a string that are kept; escapes are never split. A cut string still has more than maxString/6
	// bytes, because no escape is longer than 6.
	maxString = 6 * 300
	// maxBare is the number of bytes of a number or literal that are kept.
	maxBare = 64
)

// Read implements io.Reader.
func (s *shortener) Read(p []byte) (int, error) {
	for {
		part, err := s.in.peek()
		if err != nil {
			return 0, err
		}
		n, used := s.copy(p, part)
		s.in.skip(used)
		if n > 0 {
			return n, nil
		}
	}
}

// copy copies from text to p, and returns the lengths of the copied and of the processed text.
func (s *shortener) copy(p, text []byte) (n, used int) {
	for used < len(text) && n < len(p) {
		if s.inString && s.hex == 0 && !s.escaped {
			plain, kept := text[used:], s.length < maxString
			if kept {
				plain = plain[:min(len(plain), maxString-s.length, len(p)-n)]
			}
			at := bytes.IndexAny(plain, `"\`)
			if at >= 0 {
				plain = plain[:at]
			}
			if kept {
				n += copy(p[n:], plain)
				s.length += len(plain)
			}
			if used += len(plain); at < 0 {
				continue
			}
			if s.length >= maxString && text[used] == '\\' {
				s.escaped = true // not kept, see keeps
				used++
				continue
			}
		}
		c := text[used]
		used++
		if s.keeps(c) {
			p[n] = c
			n++
		}
	}
	return n, used
}

// keeps reports whether the next byte of the text is kept.
func (s *shortener) keeps(c byte) bool {
	switch {
	case !s.inString:
		return s.outside(c)
	case s.hex > 0:
		s.hex--
		s.length++
		return true
	case s.escaped:
		s.escaped = false
		if s.length >= maxString {
			return false // the backslash was dropped too, so digits are ordinary text
		}
		if c == 'u' {
			s.hex = 4
		}
	case c == '"':
		s.inString, s.length = false, 0
		return true
	case c == '\\':
		s.escaped = true
		return true // the length grows with the byte that follows
	}
	s.length++
	return true
}

// outside reports whether a byte outside of strings is kept.
func (s *shortener) outside(c byte) bool {
	switch c {
	case '"':
		s.inString, s.length, s.space = true, 0, false
		return true
	case '{', '}', '[', ']', ':', ',':
		s.length, s.space = 0, false
		return true
	case ' ', '\t', '\r', '\n':
		first := !s.space
		s.length, s.space = 0, true
		return first
	}
	s.length++
	s.space = false
	return s.length <= maxBare
}
