package strictjson

import (
	"bytes"
	"encoding/json"
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

// Decode decodes exactly one JSON document within the limits of l. The result consists of map[string]any, []any, string,
// bool, nil and json.Number, and shares no memory with data. The error is a *SyntaxError.
//
// The strings of a result share one copy of the text, so a retained string retains the whole copy. Use strings.Clone for
// strings that outlive the request.
func Decode(data []byte, l Limits) (any, error) { return decode(data, l, false, string(data)) }

// DecodeInPlace is like Decode, but avoids the copy for large documents: the strings of the result are parts of data,
// which must not be modified afterwards.
func DecodeInPlace(data []byte, l Limits) (any, error) {
	return decode(data, l, false, inPlace(data))
}

// inPlace returns data as a string without a copy.
func inPlace(data []byte) string {
	return unsafe.String(unsafe.SliceData(data), len(data)) //nolint:gosec // the caller no longer modifies data
}

// DecodeLenient decodes a response of the platform, with ResponseLimits and with escaped control characters allowed. A
// retained string retains at most 1 KiB of other strings, because parts of responses are cached.
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
	return decodeTokens(data, l)
}

// tooMany returns the error for a text with too many values, without errors before the offset full.
func tooMany(data []byte, full int, l Limits) (any, error) {
	return refuse(data, &SyntaxError{
		Offset: int64(full), Code: CodeValues, Message: fmt.Sprintf("document has more than %d values", l.orDefault().Values),
	})
}

// decodeTokens decodes a text token by token. It is slower than builder, but returns precise errors.
func decodeTokens(data []byte, l Limits) (any, error) {
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		return refuse(data, &SyntaxError{Code: CodeBOM, Message: "document begins with a byte order mark"})
	}
	d := decoder{
		data: data,
		lim:  l.orDefault(),
		// The maps of the result detect duplicate names, so the token reader need not.
		dec: jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true)),
	}
	v, err := d.value(0)
	if err != nil {
		return refuse(data, err)
	}
	end := d.dec.InputOffset()
	if _, err := d.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return refuse(data, &SyntaxError{
			Offset: skip(data, end), Code: CodeTrailing, Message: "unexpected data after the document",
		})
	}
	return v, nil
}

func refuse(data []byte, e *SyntaxError) (any, error) {
	e.locate(data)
	return nil, e
}

type decoder struct {
	data   []byte
	dec    *jsontext.Decoder
	lim    Limits
	values int
}

// value decodes the next value inside depth open containers.
func (d *decoder) value(depth int) (any, *SyntaxError) {
	at := d.dec.InputOffset()
	if d.values++; d.values > d.lim.Values {
		return nil, d.fault(at, CodeValues, "document has more than %d values", d.lim.Values)
	}
	if kind := d.dec.PeekKind(); kind != '[' && kind != '{' {
		return d.scalar(at)
	}
	tok, err := d.dec.ReadToken()
	if err != nil {
		return nil, d.syntax(err)
	}
	if depth >= d.lim.Depth {
		return nil, d.fault(at, CodeDepth, "arrays and objects are nested more than %d levels deep", d.lim.Depth)
	}
	if tok.Kind() == '[' {
		return d.array(depth + 1)
	}
	return d.object(depth + 1)
}

// scalar decodes the next value, which is neither an array nor an object.
func (d *decoder) scalar(at int64) (any, *SyntaxError) {
	raw, err := d.dec.ReadValue()
	if err != nil {
		return nil, d.syntax(err)
	}
	switch kind := raw.Kind(); kind {
	case '"':
		s, err := d.unquote(raw, at)
		if err != nil {
			return nil, err
		}
		return s, nil
	case '0':
		return d.number(string(raw), at)
	case 'n':
		return nil, nil
	default:
		return kind == 't', nil
	}
}

// unquote decodes the string in raw, which was just read.
func (d *decoder) unquote(raw jsontext.Value, at int64) (string, *SyntaxError) {
	s, err := unquote(raw)
	if err != nil {
		return "", d.syntax(err)
	}
	return s, d.check(s, at)
}

// unquote decodes the quoted string raw.
func unquote(raw []byte) (string, error) {
	plain, err := jsontext.AppendUnquote(make([]byte, 0, len(raw)), raw)
	return unsafe.String(unsafe.SliceData(plain), len(plain)), err //nolint:gosec // plain is not used elsewhere
}

func (d *decoder) object(depth int) (any, *SyntaxError) {
	m := map[string]any{}
	for {
		at := d.dec.InputOffset()
		if d.dec.PeekKind() == '}' {
			if _, err := d.dec.ReadToken(); err != nil {
				return nil, d.syntax(err)
			}
			return m, nil
		}
		raw, err := d.dec.ReadValue()
		if err != nil {
			return nil, d.syntax(err)
		}
		name, serr := d.name(raw, at)
		if serr != nil {
			return nil, serr
		}
		if _, dup := m[name]; dup {
			return nil, d.fault(at, CodeDuplicate, "duplicate member name %s", quoted(name))
		}
		v, serr := d.value(depth)
		if serr != nil {
			return nil, serr
		}
		m[name] = v
	}
}

func (d *decoder) array(depth int) (any, *SyntaxError) {
	items := []any{}
	for {
		if d.dec.PeekKind() == ']' {
			if _, err := d.dec.ReadToken(); err != nil {
				return nil, d.syntax(err)
			}
			return items, nil
		}
		v, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		items = append(items, v)
	}
}

func (d *decoder) name(raw jsontext.Value, at int64) (string, *SyntaxError) {
	s, err := d.unquote(raw, at)
	if err != nil {
		return "", err
	}
	if !d.lim.AllowControls && strings.ContainsFunc(s, isControl) {
		return "", d.fault(at, CodeControl, "member name contains a control character")
	}
	return s, nil
}

// check validates a string against the limits.
func (d *decoder) check(s string, at int64) *SyntaxError {
	if d.lim.AllowControls {
		return nil
	}
	if strings.IndexByte(s, 0) >= 0 {
		return d.fault(at, CodeControl, "string contains the control character U+0000")
	}
	return nil
}

func (d *decoder) number(s string, at int64) (any, *SyntaxError) {
	if len(s) > d.lim.NumberChars {
		return nil, d.fault(at, CodeNumber, "number has more than %d characters", d.lim.NumberChars)
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		exp, err := strconv.Atoi(strings.TrimPrefix(s[i+1:], "+"))
		if err != nil || max(exp, -exp) > d.lim.Exponent {
			return nil, d.fault(at, CodeNumber, "number has an exponent beyond %d", d.lim.Exponent)
		}
	}
	if d.lim.NormalizeIntegers {
		s = plain(s)
	}
	return json.Number(s), nil
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
func (d *decoder) fault(end int64, code Code, format string, args ...any) *SyntaxError {
	return &SyntaxError{Offset: skip(d.data, end), Code: code, Message: fmt.Sprintf(format, args...)}
}

// syntax converts an error of the token reader to a SyntaxError. The reader distinguishes errors only by message, which
// may change, so syntax determines the kind from the bytes at the error's offset.
func (d *decoder) syntax(err error) *SyntaxError {
	if errors.Is(err, io.EOF) {
		return &SyntaxError{Code: CodeEmpty, Message: "document is empty"}
	}
	e := &SyntaxError{Offset: d.dec.InputOffset(), Code: CodeSyntax, Message: "document is not valid JSON"}
	if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		e.Offset = s.ByteOffset
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		e.Offset, e.Code, e.Message = int64(len(d.data)), CodeTruncated, "unexpected end of document"
		return e
	}
	rest := d.data[min(e.Offset, int64(len(d.data))):]
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
