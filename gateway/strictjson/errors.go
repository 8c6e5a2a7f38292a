package strictjson

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Code identifies the kind of an error. Codes do not change, and can be used as metric labels.
type Code string

// Error codes of Decode.
const (
	CodeEmpty     Code = "empty"           // no value
	CodeTruncated Code = "truncated"       // the document ends inside a value
	CodeSyntax    Code = "syntax"          // violation of the grammar of RFC 8259
	CodeTrailing  Code = "trailing_data"   // data after the document
	CodeBOM       Code = "byte_order_mark" // document begins with U+FEFF
	CodeUTF8      Code = "invalid_utf8"    // invalid UTF-8
	CodeSurrogate Code = "lone_surrogate"  // unpaired surrogate in an escape sequence
	CodeControl   Code = "control"         // a control character, raw or escaped
	CodeDuplicate Code = "duplicate_name"  // duplicate member name in an object
	CodeDepth     Code = "too_deep"        // Limits.Depth
	CodeValues    Code = "too_many_values"
	CodeNumber    Code = "number_too_long" // Limits.NumberChars or Limits.Exponent
)

// SyntaxError describes why a document was rejected. It contains no text of the document, except for at most 64 characters of a member
// name.
type SyntaxError struct {
	// Offset is the 0-based position of the error, in bytes.
	Offset int64
	// Line and Column are the 1-based position of the error. Column counts bytes.
	Line, Column int
	Code         Code
	// Message describes the error. It begins with a lower-case letter and does not contain the position.
	Message string
}

// Error returns the message with line and column.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s (line %d, column %d)", e.Message, e.Line, e.Column)
}

// locate sets Line and Column.
func (e *SyntaxError) locate(data []byte) {
	before := data[:min(max(e.Offset, 0), int64(len(data)))]
	e.Line = bytes.Count(before, []byte{'\n'}) + 1
	e.Column = len(before) - (bytes.LastIndexByte(before, '\n') + 1) + 1
}

// clip truncates s to 64 characters, so that an error does not expose the body.
func clip(s string) string {
	const limit = 64
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit]) + "…"
}

func quoted(name string) string { return strconv.QuoteToGraphic(clip(name)) }
