package strictjson

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Code names one kind of fault. Codes are stable and fit for metrics.
type Code string

// The kinds of fault Decode tells apart.
const (
	CodeEmpty     Code = "empty"           // no value at all
	CodeTruncated Code = "truncated"       // the text ends inside a value
	CodeSyntax    Code = "syntax"          // the grammar of RFC 8259 is broken
	CodeTrailing  Code = "trailing_data"   // bytes after the document
	CodeBOM       Code = "byte_order_mark" // the text begins with U+FEFF
	CodeUTF8      Code = "invalid_utf8"    // a byte sequence that is not UTF-8
	CodeSurrogate Code = "lone_surrogate"  // an escape that names half a character
	CodeControl   Code = "control"         // a control character, raw or escaped
	CodeDuplicate Code = "duplicate_name"  // a member name used twice in one object
	CodeDepth     Code = "too_deep"        // Limits.Depth
	CodeValues    Code = "too_many_values"
	CodeNumber    Code = "number_too_long" // Limits.NumberChars or Limits.Exponent
)

// SyntaxError says why and where a document was refused. It never carries more of
// the text than the first 64 characters of a member name.
type SyntaxError struct {
	// Offset is the position of the fault in bytes from the start.
	Offset int64
	// Line and Column locate Offset, both from 1; Column counts bytes.
	Line, Column int
	Code         Code
	// Message describes the fault, in lower case, without the place.
	Message string
}

// Error returns the message with line and column.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s (line %d, column %d)", e.Message, e.Line, e.Column)
}

// locate fills Line and Column.
func (e *SyntaxError) locate(data []byte) {
	before := data[:min(max(e.Offset, 0), int64(len(data)))]
	e.Line = bytes.Count(before, []byte{'\n'}) + 1
	e.Column = len(before) - (bytes.LastIndexByte(before, '\n') + 1) + 1
}

// clip shortens s to 64 characters, so that an error cannot carry a body home.
func clip(s string) string {
	const limit = 64
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	n := 0
	for i := range s {
		if n == limit {
			return s[:i] + "…"
		}
		n++
	}
	return s
}

func quoted(name string) string { return strconv.QuoteToGraphic(clip(name)) }
