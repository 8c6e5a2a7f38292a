package wire

import "strings"

// state is the part of a message that the framer expects next. States before inBody belong to the request head or precede it.
type state uint8

const (
	atStart       state = iota // the first byte of a message
	atEmptyLine                // after the CR of an empty line before a message
	inMethod                   // after the first byte of the method
	atTarget                   // after the space that follows the method
	inScheme                   // after the first byte of an absolute-form
	inAuthority                // after its two slashes
	inPort                     // after the colon of its port
	inTarget                   // after the first byte of a path or query
	inVersion                  // after the space that follows the target
	atLine                     // the first byte of a header line
	inName                     // after the first byte of a name
	inValue                    // after the colon
	atValueEnd                 // after the CR that ends a line
	atHeadEnd                  // after the CR of the empty line
	inBody                     // Content-Length bytes
	atChunk                    // the first digit of a chunk size
	inChunkSize                // after the first digit
	inChunkExt                 // after a semicolon
	atChunkLine                // after the CR that follows a chunk size
	inChunk                    // chunk data
	atChunkEnd                 // the CR that follows chunk data
	atChunkFinish              // the LF that follows chunk data
)

// field is a header whose value the framer interprets. Only the syntax of other headers is checked.
type field uint8

const (
	other field = iota
	host
	contentLength
	transferEncoding
	expect
)

// Limits, which are higher than legitimate clients need.
const (
	// MaxHead is the maximum size of the request line and headers in bytes.
	MaxHead        = 32 << 10
	maxFields      = 100
	maxMethod      = 32
	maxChunkDigits = 8
	maxExtensions  = 1 << 10
	maxTrailer     = 2 << 10
	maxDigits      = 15
	// nameRoom and valueRoom are long enough for all names and values that the framer interprets.
	nameRoom  = len("transfer-encoding")
	valueRoom = 16
)

// framer parses the heads and the framing of bodies in one direction of a connection. It stores only the current header field.
type framer struct {
	state state
	// skipped is true if an empty line before the message was dropped. old is true if the message is HTTP/1.0.
	skipped, old bool
	// verb is the beginning of the method.
	verb [len("HEAD")]byte
	// size is the number of bytes in the head or trailer section so far, and fields is the number of lines.
	size, fields int
	// pos counts the bytes of the current token.
	pos int
	// trailer is true if the current lines belong to a trailer section.
	trailer bool

	// Numbers of these fields in the head.
	hosts, lengths, codings, expects uint8

	// remain is the number of bytes left in the body or chunk.
	remain int64
	// ext counts the bytes of chunk extensions. digits is the number of digits missing from a percent-escape.
	ext, digits int

	// The current field. name is in lower case and is stored only while it may be the name of an interpreted field. value is stored only for
	// an interpreted field.
	field field
	name  [nameRoom]byte
	value [valueRoom]byte
	// vlen is the length of the value without one leading space. spaced is true if the value has a leading space.
	vlen   int
	spaced bool
}

// inHead reports whether the next byte belongs to a request head or precedes one. No handler is then running for the request.
func (f *framer) inHead() bool { return f.state < inBody && !f.trailer }

// leading returns the number of bytes at the start of b that belong to an empty line before a request line. The caller drops these bytes,
// because recipients ignore one empty line (RFC 9112, section 2.2).
func (f *framer) leading(b []byte) (int, *Refusal) {
	for i, c := range b {
		switch {
		case f.state == atStart && c == '\r' && !f.skipped:
			*f = framer{state: atEmptyLine}
		case f.state == atEmptyLine && c == '\n':
			f.state, f.skipped = atStart, true
		case f.state == atEmptyLine:
			return i, errLineEnd
		default:
			return i, nil
		}
	}
	return len(b), nil
}

// scan checks the next bytes of the stream and returns the number of bytes that are accepted. It stops after the end of a message and
// before an error. The framer must not be used after an error.
func (f *framer) scan(b []byte) (int, *Refusal) {
	for i := 0; i < len(b); {
		var n int
		var fault *Refusal
		if f.state < inBody {
			n, fault = f.scanBounded(b[i:])
		} else {
			n, fault = f.scanBody(b[i:])
		}
		i += n
		if fault != nil {
			return i, fault
		}
		if f.state == atStart {
			return i, nil
		}
	}
	return len(b), nil
}

// scanBounded calls scanHead, but limits b to the number of bytes that the section may still have.
func (f *framer) scanBounded(b []byte) (int, *Refusal) {
	if f.state == atStart {
		*f = framer{}
	}
	bound, fault := MaxHead, errHeadTooLarge
	if f.trailer {
		bound, fault = maxTrailer, errTrailer
	}
	room := bound - f.size
	if room == 0 {
		return 0, fault
	}
	n, fault := f.scanHead(b[:min(room, len(b))])
	f.size += n
	return n, fault
}

// scanHead checks the bytes of a head up to the next state change.
func (f *framer) scanHead(b []byte) (int, *Refusal) {
	c := b[0]
	switch f.state {
	case atStart, inMethod:
		return f.method(b)
	case atTarget, inScheme:
		return f.scheme(c)
	case inAuthority, inPort:
		return f.authority(c)
	case inTarget:
		return f.target(b)
	case inVersion:
		return f.version(b)
	case atLine:
		return f.line(b)
	case inName:
		return f.nameOf(b)
	case inValue:
		return f.text(b)
	case atValueEnd:
		if c != '\n' {
			return 0, errLineEnd
		}
		f.state = atLine
		if fault := f.closeField(); fault != nil {
			return 0, fault
		}
		return 1, nil
	default: // atHeadEnd
		if c != '\n' {
			return 0, errLineEnd
		}
		if fault := f.closeHead(); fault != nil {
			return 0, fault
		}
		return 1, nil
	}
}

func (f *framer) method(b []byte) (int, *Refusal) {
	f.state = inMethod
	for i, c := range b {
		switch {
		case c == ' ' && f.pos > 0:
			f.state, f.pos = atTarget, 0
			return i + 1, nil
		case class[c]&token == 0 || f.pos == maxMethod:
			return i, errMethod
		}
		if f.pos < len(f.verb) {
			f.verb[f.pos] = c
		}
		f.pos++
	}
	return len(b), nil
}

// isRead reports whether the method of the last message is GET or HEAD.
func (f *framer) isRead() bool {
	return f.verb == [...]byte{'G', 'E', 'T', 0} || f.verb == [...]byte{'H', 'E', 'A', 'D'}
}

// scheme reads the slash of an origin-form, or the scheme and slashes of an absolute-form (RFC 9112, sections 3.2.1 and 3.2.2).
func (f *framer) scheme(c byte) (int, *Refusal) {
	const want = "https://"
	if f.state == atTarget && c == '/' {
		f.state = inTarget
		return 1, nil
	}
	if f.pos == len("http") && c == ':' {
		f.pos++
	}
	if c|class[c]&upper != want[f.pos] {
		return 0, errTarget
	}
	f.state = inScheme
	if f.pos++; f.pos == len(want) {
		f.state, f.pos = inAuthority, 0
	}
	return 1, nil
}

// authority reads the host and port of an absolute-form. It refuses users and IPv6 literals, which parsers interpret differently.
func (f *framer) authority(c byte) (int, *Refusal) {
	switch {
	case f.pos > 0 && (c == '/' || c == '?'):
		f.state = inTarget
	case f.pos > 0 && c == ' ':
		f.state, f.pos = inVersion, 0
		return 1, nil
	case f.pos > 0 && c == ':' && f.state == inAuthority:
		f.state = inPort
	case class[c]&authority == 0, c == ':' || c == '[' || c == ']', f.state == inPort && (c < '0' || c > '9'):
		return 0, errTarget
	}
	f.pos++
	return 1, nil
}

// target reads a path and query. It refuses incomplete escapes, which parsers interpret differently.
func (f *framer) target(b []byte) (int, *Refusal) {
	for i, c := range b {
		switch {
		case f.digits > 0:
			if _, ok := unhex(c); !ok {
				return i, errTarget
			}
			f.digits--
		case class[c]&visible != 0:
			if c == '%' {
				f.digits = 2
			}
		case c == ' ':
			f.state, f.pos = inVersion, 0
			return i + 1, nil
		default:
			return i, errTarget
		}
	}
	return len(b), nil
}

// version reads HTTP/1.1 or HTTP/1.0 and the line end. Other valid versions get 505.
func (f *framer) version(b []byte) (int, *Refusal) {
	const want = "HTTP/1.1\r\n"
	for i, c := range b {
		if c == '0' && f.pos == len("HTTP/1.") {
			f.old = true
		} else if c != want[f.pos] {
			if digit := c >= '0' && c <= '9'; digit && (f.pos == len("HTTP/") || f.pos == len("HTTP/1.")) {
				return i, errVersion
			}
			return i, errRequestLine
		}
		if f.pos++; f.pos == len(want) {
			f.state = atLine
			return i + 1, nil
		}
	}
	return len(b), nil
}

// line starts a header line, or the empty line that ends the section.
func (f *framer) line(b []byte) (int, *Refusal) {
	switch c := b[0]; {
	case c == '\r':
		f.state = atHeadEnd
		return 1, nil
	case c == ' ' || c == '\t':
		return 0, errFold
	case class[c]&token == 0:
		return 0, errName
	}
	if f.fields++; f.fields > maxFields {
		return 0, errFields
	}
	f.state, f.pos = inName, 0
	return f.nameOf(b)
}

// nameOf reads a name up to its colon.
func (f *framer) nameOf(b []byte) (int, *Refusal) {
	for i, c := range b {
		k := class[c]
		if k&token == 0 {
			if c != ':' {
				return i, errName
			}
			f.field = f.understood()
			f.state, f.vlen, f.spaced = inValue, 0, false
			return i + 1, nil
		}
		if f.pos < nameRoom {
			f.name[f.pos] = c | k&upper
		}
		f.pos++
	}
	return len(b), nil
}

// understood returns the field for the current name.
func (f *framer) understood() field {
	if f.pos > nameRoom || f.trailer {
		return other
	}
	switch string(f.name[:f.pos]) {
	case "host":
		return host
	case "content-length":
		return contentLength
	case "transfer-encoding":
		return transferEncoding
	case "expect":
		return expect
	}
	return other
}

// text reads a value up to its CR.
func (f *framer) text(b []byte) (int, *Refusal) {
	n := 0
	for n < len(b) && class[b[n]]&text != 0 {
		n++
	}
	if f.field != other {
		for _, c := range b[:n] {
			f.keep(c)
		}
	}
	if n == len(b) {
		return n, nil
	}
	switch b[n] {
	case '\r':
		f.state = atValueEnd
		return n + 1, nil
	case '\n':
		return n, errLineEnd
	default:
		return n, errValue
	}
}

// keep stores a byte of an interpreted value. It drops one leading space. Other white space becomes part of the value and makes the value
// invalid.
func (f *framer) keep(c byte) {
	if c == ' ' && f.vlen == 0 && !f.spaced {
		f.spaced = true
		return
	}
	if f.field == host {
		if class[c]&authority == 0 {
			f.hosts = 2 // treated like a second Host
		}
		f.vlen = 1
		return
	}
	if f.vlen < valueRoom {
		f.value[f.vlen] = c
	}
	f.vlen++
}

// closeField checks the value of an interpreted field.
func (f *framer) closeField() *Refusal {
	switch f.field {
	case host:
		if f.hosts++; f.hosts != 1 || f.vlen == 0 {
			return errHost
		}
	case contentLength:
		if f.lengths++; f.lengths != 1 {
			return errLengths
		}
		return f.length()
	case transferEncoding:
		if f.codings++; f.codings != 1 || f.old || !f.valueIs("chunked") {
			return errCoding
		}
	case expect:
		if f.expects++; f.expects != 1 || !f.valueIs("100-continue") {
			return errExpect
		}
	case other:
	}
	return nil
}

// valueIs reports whether the value equals word. It ignores case.
func (f *framer) valueIs(word string) bool {
	return f.vlen <= valueRoom && strings.EqualFold(string(f.value[:f.vlen]), word)
}

// length parses a Content-Length: plain digits without sign, list or leading zeros (RFC 9112, section 6.3, narrowed).
func (f *framer) length() *Refusal {
	if f.vlen == 0 || f.vlen > maxDigits || f.value[0] == '0' && f.vlen > 1 {
		return errLength
	}
	f.remain = 0
	for _, c := range f.value[:f.vlen] {
		if c < '0' || c > '9' {
			return errLength
		}
		f.remain = 10*f.remain + int64(c-'0')
	}
	return nil
}

// closeHead ends a head or a trailer section. The end of a trailer section is the end of the message.
func (f *framer) closeHead() *Refusal {
	switch {
	case f.trailer:
		f.state = atStart
	case f.hosts == 0 && !f.old:
		return errHost
	case f.lengths+f.codings > 1:
		return errBoth
	case f.codings == 1:
		f.state = atChunk
	case f.remain > 0:
		f.state = inBody
	default:
		f.state = atStart
	}
	return nil
}
