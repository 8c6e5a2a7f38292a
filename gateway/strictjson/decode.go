package strictjson

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// Decode decodes data, which must contain exactly one JSON document within the limits l. The result consists of map[string]any, []any,
// string, bool, nil and json.Number, and shares no memory with data. If Decode rejects data, the error is a [*SyntaxError].
//
// The strings in the result share one copy of the text, so that each retained string retains the whole copy. Use strings.Clone for strings
// that outlive the request.
func Decode(data []byte, l Limits) (any, error) { return decode(data, l, false, string(data)) }

// DecodeInPlace is like [Decode], but does not copy data: the strings in the result share memory with data, which must not be modified
// afterwards.
func DecodeInPlace(data []byte, l Limits) (any, error) {
	return decode(data, l, false, inPlace(data))
}

// inPlace returns data as a string without a copy.
func inPlace(data []byte) string {
	return unsafe.String(unsafe.SliceData(data), len(data)) //nolint:gosec // the caller no longer modifies data
}

// DecodeLenient decodes a response of the platform. It applies [ResponseLimits] and permits escaped control characters. Because parts of
// responses are cached, a string that is kept in memory keeps at most 1 KiB of neighbouring strings alive.
func DecodeLenient(data []byte) (any, error) { return decode(data, ResponseLimits(), true, "") }

func decode(data []byte, l Limits, separate bool, text string) (any, error) {
	b := builder{data: data, text: text, separate: separate, lim: l.orDefault()}
	v, ok := b.document()
	switch {
	case ok:
		return v, nil
	case b.full > 0 && !l.NormalizeIntegers: // avoids decoding a long text twice
		return tooMany(data, b.full, l)
	}
	return refuse(data, cmp.Or(findError(data, l.orDefault()), &SyntaxError{Code: CodeSyntax, Message: "document is not valid JSON"}))
}

// tooMany returns the error for a text with too many values. The text has no other errors before the offset full.
func tooMany(data []byte, full int, l Limits) (any, error) {
	return refuse(data, &SyntaxError{
		Offset: int64(full), Code: CodeValues, Message: fmt.Sprintf("document has more than %d values", l.orDefault().Values),
	})
}

func refuse(data []byte, e *SyntaxError) (any, error) {
	e.locate(data)
	return nil, e
}

// findError returns the first error in a text, without its line and column, or nil for a valid text. It rejects the same texts as builder,
// but is slower, because it reads the text token by token.
func findError(data []byte, l Limits) *SyntaxError {
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		return &SyntaxError{Code: CodeBOM, Message: "document begins with a byte order mark"}
	}
	// The finder detects duplicate names, so the token reader need not.
	f := finder{data: data, lim: l, dec: jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true))}
	for f.values == 0 || f.dec.StackDepth() > 0 {
		if err := f.next(); err != nil {
			return err
		}
	}
	end := f.dec.InputOffset()
	if _, err := f.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return f.fault(end, CodeTrailing, "unexpected data after the document")
	}
	return nil
}

// finder finds the first error in a text.
type finder struct {
	data   []byte
	dec    *jsontext.Decoder
	lim    Limits
	values int
	// names holds the names in each open container, outermost first. It is nil for an array.
	names []map[string]bool
}

// next reads the next token. Names and scalars are read as values, because the token reader only then returns their text.
func (f *finder) next() *SyntaxError {
	at := f.dec.InputOffset()
	container, read := f.dec.StackIndex(f.dec.StackDepth())
	kind, isName := f.dec.PeekKind(), container == '{' && read%2 == 0
	switch {
	case kind == container+2 && (isName || container == '['): // the end of the container
		f.names = f.names[:len(f.names)-1]
		return f.token()
	case isName:
		return f.scalar(at, true)
	}
	if f.values++; f.values > f.lim.Values {
		return f.fault(at, CodeValues, "document has more than %d values", f.lim.Values)
	}
	if kind != '[' && kind != '{' {
		return f.scalar(at, false)
	}
	if err := f.token(); err != nil {
		return err
	}
	if len(f.names) >= f.lim.Depth {
		return f.fault(at, CodeDepth, "arrays and objects are nested more than %d levels deep", f.lim.Depth)
	}
	f.names = append(f.names, nil)
	if kind == '{' {
		f.names[len(f.names)-1] = map[string]bool{}
	}
	return nil
}

// token reads the start or the end of a container.
func (f *finder) token() *SyntaxError {
	if _, err := f.dec.ReadToken(); err != nil {
		return f.syntax(err)
	}
	return nil
}

// scalar reads a name, or a value that is neither an array nor an object.
func (f *finder) scalar(at int64, isName bool) *SyntaxError {
	raw, err := f.dec.ReadValue()
	switch {
	case err != nil:
		return f.syntax(err)
	case raw.Kind() == '0':
		return f.number(string(raw), at)
	case raw.Kind() != '"':
		return nil
	}
	s, _ := unquote(raw) // validated by ReadValue
	switch {
	case !f.lim.AllowControls && strings.IndexByte(s, 0) >= 0:
		return f.fault(at, CodeControl, "string contains the control character U+0000")
	case !isName:
		return nil
	case !f.lim.AllowControls && strings.ContainsFunc(s, isControl):
		return f.fault(at, CodeControl, "member name contains a control character")
	}
	seen := f.names[len(f.names)-1]
	if seen[s] {
		return f.fault(at, CodeDuplicate, "duplicate member name %s", quoted(s))
	}
	seen[s] = true
	return nil
}

func (f *finder) number(s string, at int64) *SyntaxError {
	if len(s) > f.lim.NumberChars {
		return f.fault(at, CodeNumber, "number has more than %d characters", f.lim.NumberChars)
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		exp, err := strconv.Atoi(strings.TrimPrefix(s[i+1:], "+"))
		if err != nil || max(exp, -exp) > f.lim.Exponent {
			return f.fault(at, CodeNumber, "number has an exponent beyond %d", f.lim.Exponent)
		}
	}
	return nil
}

// unquote decodes the quoted string raw.
func unquote(raw []byte) (string, error) {
	plain, err := jsontext.AppendUnquote(make([]byte, 0, len(raw)), raw)
	return unsafe.String(unsafe.SliceData(plain), len(plain)), err //nolint:gosec // plain is not used elsewhere
}

// maxDigits is the maximum number of digits of an integer that every JSON parser represents exactly.
const maxDigits = 16

// plain returns an integral number in plain digits if it has at most maxDigits. It returns any other number in its
// original spelling.
func plain(s string) string {
	if s != "-0" && !strings.ContainsAny(s, ".eE") {
		return s
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok || !r.IsInt() {
		return s
	}
	if digits := r.Num().String(); len(strings.TrimPrefix(digits, "-")) <= maxDigits {
		return digits
	}
	return s
}

// fault returns an error about the token that begins at or after end, the end of the previous token.
func (f *finder) fault(end int64, code Code, format string, args ...any) *SyntaxError {
	return &SyntaxError{Offset: skip(f.data, end), Code: code, Message: fmt.Sprintf(format, args...)}
}

// syntax converts an error of the token reader to a SyntaxError. The reader distinguishes errors only by message, which
// may change, so syntax determines the kind from the bytes at the error's offset.
func (f *finder) syntax(err error) *SyntaxError {
	if errors.Is(err, io.EOF) {
		return &SyntaxError{Code: CodeEmpty, Message: "document is empty"}
	}
	e := &SyntaxError{Offset: f.dec.InputOffset(), Code: CodeSyntax, Message: "document is not valid JSON"}
	if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		e.Offset = s.ByteOffset
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		e.Offset, e.Code, e.Message = int64(len(f.data)), CodeTruncated, "unexpected end of document"
		return e
	}
	rest := f.data[min(e.Offset, int64(len(f.data))):]
	switch r, n := utf8.DecodeRune(rest); {
	case r == utf8.RuneError && n == 1:
		e.Code, e.Message = CodeUTF8, "document is not valid UTF-8"
	case isSurrogate(rest):
		e.Code, e.Message = CodeSurrogate, "escape sequence is an unpaired surrogate"
	case n == 1 && r < 0x20:
		e.Code, e.Message = CodeControl, fmt.Sprintf("control character U+%04X must be escaped", r)
	case errors.Is(err, jsontext.ErrNonStringName):
		e.Message = "member name must be a string"
	case n > 0:
		e.Message = "unexpected character " + strconv.QuoteRuneToGraphic(r)
	}
	return e
}

// isSurrogate reports whether b begins with a \u escape in U+D800 to U+DFFF.
func isSurrogate(b []byte) bool {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return false
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 32)
	return err == nil && n >= 0xd800 && n <= 0xdfff
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

// skip returns the offset of the first byte at or after off that is part of a token.
func skip(data []byte, off int64) int64 {
	for off < int64(len(data)) && strings.IndexByte(" \t\r\n,:", data[off]) >= 0 {
		off++
	}
	return off
}
