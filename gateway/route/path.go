package route

import (
	"net/url"
	"strings"
)

// maxPath bounds a path; the longest the platform has is a quarter of it.
const maxPath = 1024

// checkPath refuses all but the one plain spelling of a path (RFC 3986,
// section 3.3, narrowed): only printable ASCII, no backslash, semicolon or
// fragment, no dot segments, no escape that hides any of these, and none of a
// character that requires no escape.
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
			return &PathError{"the path holds a character outside printable ASCII"}
		case c == '\\' || c == ';' || c == '#' || c == '?':
			return &PathError{"the path holds a character that other parsers read differently"}
		case c == '%':
			b, ok := escaped(path[i:])
			if !ok {
				return &PathError{"the path holds a broken escape"}
			}
			if !allowedEscape(b) {
				return &PathError{"the path hides a separator, dot, control or non-ASCII character in an escape"}
			}
			if unreserved(b) {
				return ErrNotFound // another spelling of a path that may have a route
			}
			i += 2
		}
	}
	for seg := range strings.SplitSeq(path[1:], "/") {
		if seg == "." || seg == ".." {
			return &PathError{"the path holds a dot segment"}
		}
	}
	return nil
}

// maxRest bounds the rest of a path.
const maxRest = 8 << 10

// checkRest refuses the part of a path that a {name...} stands for only where some reader may find a dot segment in it: behind escapes,
// decoded once or more, between backslashes, or before a semicolon. Everything else is the business of the route's own reader.
func checkRest(rest string) error {
	if len(rest) > maxRest {
		return &PathError{"the path is too long"}
	}
	if strings.ContainsFunc(rest, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '#' || r == '?' }) {
		return &PathError{"the path holds a character outside printable ASCII"}
	}
	if _, err := url.PathUnescape(rest); err != nil {
		return &PathError{"the path holds a broken escape"}
	}
	const decodings = 4
	for range decodings {
		for _, seg := range strings.FieldsFunc(rest, func(r rune) bool { return r == '/' || r == '\\' }) {
			if seg, _, _ = strings.Cut(seg, ";"); seg == "." || seg == ".." {
				return &PathError{"the path holds a dot segment"}
			}
		}
		rest = unescape(rest)
	}
	return nil
}

// unreserved reports whether a byte never requires an escape (RFC 3986, section
// 2.3), so that its escape is a second spelling of it. The dot is not among
// them here: plain refuses its escape.
func unreserved(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || b == '-' || b == '_' || b == '~'
}

// allowedEscape reports whether an escaped byte may stand in a parameter: printable
// ASCII, nothing with a meaning in paths.
func allowedEscape(b byte) bool {
	return b >= ' ' && b < 0x7f && !strings.ContainsRune(`/\.%;#?`, rune(b))
}

// escaped reads the percent-escape s begins with.
func escaped(s string) (byte, bool) {
	if len(s) < 3 {
		return 0, false
	}
	hi, ok1 := unhex(s[1])
	lo, ok2 := unhex(s[2])
	return hi<<4 | lo, ok1 && ok2
}

func unhex(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// unescape decodes the whole escapes of s.
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
