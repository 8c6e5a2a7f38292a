package http1

import (
	"bytes"
	"fmt"

	"golang.org/x/net/http/httpguts"
)

// isToken reports whether s is a token (RFC 9110, section 5.6.2).
func isToken[T string | []byte](s T) bool {
	for i := range len(s) {
		if !httpguts.IsTokenRune(rune(s[i])) {
			return false
		}
	}
	return len(s) > 0
}

// isText reports whether s consists of field-vchar, SP and HTAB (RFC 9110, section 5.5).
func isText[T string | []byte](s T) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// checkHead refuses response headers that parsers may interpret differently: line ends other than CRLF, folded lines, white space before a
// colon, control characters, and any framing other than one Content-Length or one Transfer-Encoding: chunked. head includes the empty line.
func checkHead(head []byte) error {
	line, rest, _ := bytes.Cut(head, []byte("\r\n"))
	minor, err := checkStatusLine(line)
	if err != nil {
		return err
	}
	lengths, codings := 0, 0
	for {
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if len(name) == len(line) || !isToken(name) {
			return fmt.Errorf("%w: invalid header name", ErrMalformed)
		}
		if !isText(value) {
			return fmt.Errorf("%w: invalid header value", ErrMalformed)
		}
		switch value = bytes.Trim(value, " \t"); {
		case is(name, "content-length"):
			if lengths++; !isLength(value) {
				return fmt.Errorf("%w: invalid Content-Length", ErrMalformed)
			}
		case is(name, "transfer-encoding"):
			if codings++; !is(value, "chunked") || minor == '0' {
				return fmt.Errorf("%w: invalid Transfer-Encoding", ErrMalformed)
			}
		}
	}
	if lengths+codings > 1 {
		return fmt.Errorf("%w: multiple Content-Length or Transfer-Encoding headers", ErrMalformed)
	}
	return nil
}

// checkStatusLine checks a status line (RFC 9112, section 4) and returns the minor version.
func checkStatusLine(line []byte) (minor byte, err error) {
	const shape = "HTTP/1.1 200"
	bad := len(line) < len(shape) || !bytes.HasPrefix(line, []byte("HTTP/1.")) || line[7] != '0' && line[7] != '1' || line[8] != ' ' ||
		line[9] < '1' || line[9] > '9' || !digits(line[10:12]) || len(line) > len(shape) && line[12] != ' ' || !isText(line)
	if bad {
		return 0, fmt.Errorf("%w: invalid status line", ErrMalformed)
	}
	return line[7], nil
}

func is(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

func isLength(b []byte) bool { return len(b) > 0 && len(b) <= 18 && digits(b) }

func digits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
