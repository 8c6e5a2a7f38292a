package engine

import (
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// The codes of the engine's errors.
const (
	CodeParse      = "GRAPHQL_PARSE_FAILED"
	CodeValidation = "GRAPHQL_VALIDATION_FAILED"
	CodeBadInput   = "BAD_USER_INPUT"
	CodeLimit      = "LIMIT_EXCEEDED"
	CodeTooLarge   = "PAYLOAD_TOO_LARGE" // the document; Limit is "document"
)

// Error is a refusal of a request by the engine.
type Error struct {
	Message string
	Code    string
	// Limit names the bound that was met; "" for none.
	Limit string
	// Line and Column tell where in the document; 0 when that is not known.
	Line, Column int
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// at notes where in the document an error was found, unless that is known. A
// nil error stays nil.
func (e *Error) at(p *ast.Position) *Error {
	if e != nil && e.Line == 0 && p != nil {
		e.Line, e.Column = p.Line, p.Column
	}
	return e
}

func invalid(message string) *Error { return &Error{Message: message, Code: CodeValidation} }

func badInput(message string) *Error { return &Error{Message: message, Code: CodeBadInput} }

// LimitExceeded returns the error of a request that exceeds the limit of the given
// name.
func LimitExceeded(limit string, most int, unit string) *Error {
	return &Error{
		Message: "the request exceeds the limit of " + strconv.Itoa(most) + " " + unit, Code: CodeLimit, Limit: limit,
	}
}

// Clip bounds the part of a caller's string that a message repeats, to 80 bytes.
func Clip(s string) string { return clip(s, 80) }

func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
