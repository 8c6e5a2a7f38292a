package route

import (
	"net/url"
	"strconv"
	"strings"
)

// maxPath is the maximum length of a path in bytes, which is four times the length of the platform's longest path.
const maxPath = 1024

// checkPath returns an error unless a path has its simplest spelling (RFC 3986, section 3.3, narrowed). The path must consist of printable
// ASCII, without backslashes, semicolons, fragments and dot segments. It must not contain escapes for these, or for characters that need no
// escape.
func checkPath(path string) error {
	if !strings.HasPrefix(path, "/") {
		return &PathError{"the request target is not an absolute path"}
	}
	if len(path) > maxPath {
		return &PathError{"the path is too long"}
	}
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case c <= ' ' || c >= 0x7f:
			return &PathError{"the path contains a character outside printable ASCII"}
		case c == '\\' || c == ';' || c == '#' || c == '?':
			return &PathError{"the path contains a character that parsers interpret differently"}
		case c == '%':
			b, ok := escaped(path[i:])
			if !ok {
				return &PathError{"the path contains an invalid escape"}
			}
			if !allowedEscape(b) {
				return &PathError{"the path contains an escaped separator, dot, control or non-ASCII character"}
			}
			if unreserved(b) {
				return ErrNotFound // another spelling of a path that a route may match
			}
			i += 2
		}
	}
	for seg := range strings.SplitSeq(path[1:], "/") {
		if seg == "." || seg == ".." {
			return &PathError{"the path contains a dot segment"}
		}
	}
	return nil
}

// maxRest is the maximum length of the part matched by {name...}.
const maxRest = 8 << 10

// checkRest checks the part of a path that {name...} matches. It returns an error if a parser may find a dot segment in this part: after
// decoding escapes once or several times, between backslashes, or before a semicolon. It leaves all other checks to the receiver.
func checkRest(rest string) error {
	if len(rest) > maxRest {
		return &PathError{"the path is too long"}
	}
	if strings.ContainsFunc(rest, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '#' || r == '?' }) {
		return &PathError{"the path contains a character outside printable ASCII"}
	}
	if _, err := url.PathUnescape(rest); err != nil {
		return &PathError{"the path contains an invalid escape"}
	}
	const decodings = 4
	for range decodings {
		for _, seg := range strings.FieldsFunc(rest, func(r rune) bool { return r == '/' || r == '\\' }) {
			if seg, _, _ = strings.Cut(seg, ";"); seg == "." || seg == ".." {
				return &PathError{"the path contains a dot segment"}
			}
		}
		rest = unescape(rest)
	}
	return nil
}

// unreserved reports whether a byte never needs an escape (RFC 3986, section 2.3). An escape of such a byte would be a second spelling. It
// returns false for the dot, because allowedEscape already refuses the escape of a dot.
func unreserved(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || b == '-' || b == '_' || b == '~'
}

// allowedEscape reports whether an escape of a byte may occur in a parameter. The byte must be printable ASCII and have no special meaning
// in paths.
func allowedEscape(b byte) bool {
	return b >= ' ' && b < 0x7f && !strings.ContainsRune(`/\.%;#?`, rune(b))
}

// escaped decodes the percent-escape at the beginning of s.
func escaped(s string) (byte, bool) {
	if len(s) < 3 {
		return 0, false
	}
	b, err := strconv.ParseUint(s[1:3], 16, 8)
	return byte(b), err == nil
}

// unescape decodes all valid escapes of s.
func unescape(seg string) string {
	if !strings.Contains(seg, "%") {
		return seg
	}
	var b strings.Builder
	for i := 0; i < len(seg); i++ {
		if c, whole := escaped(seg[i:]); seg[i] == '%' && whole {
			b.WriteByte(c)
			i += 2
			continue
		}
		b.WriteByte(seg[i])
	}
	return b.String()
}
