package engine

import (
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// Error codes of the engine.
const (
	CodeParse      = "GRAPHQL_PARSE_FAILED"
	CodeValidation = "GRAPHQL_VALIDATION_FAILED"
	CodeBadInput   = "BAD_USER_INPUT"
	CodeLimit      = "LIMIT_EXCEEDED"
	CodeTooLarge   = "PAYLOAD_TOO_LARGE" // document too long; Limit is "document"
)

// Error is the reason why the engine refused a request.
type Error struct {
	Message string
	Code    string
	// Limit is the name of the exceeded limit, such as "depth", or "".
	Limit string
	// Line and Column locate the error in the document; 0 means unknown.
	Line, Column int
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// at sets the location of e if it has none. A nil error stays nil.
func (e *Error) at(p *ast.Position) *Error {
	if e != nil && e.Line == 0 && p != nil {
		e.Line, e.Column = p.Line, p.Column
	}
	return e
}

func invalid(message string) *Error { return &Error{Message: message, Code: CodeValidation} }

func badInput(message string) *Error { return &Error{Message: message, Code: CodeBadInput} }

// LimitExceeded returns the error for a request that exceeds a limit. name is the value of Error.Limit, such as "depth". unit is a plural
// noun for the message, such as "tokens".
func LimitExceeded(name string, limit int, unit string) *Error {
	return &Error{
		Message: "the request exceeds the limit of " + strconv.Itoa(limit) + " " + unit, Code: CodeLimit, Limit: name,
	}
}

// Clip truncates a string from a caller to 80 bytes, for use in a message.
func Clip(s string) string { return clip(s, 80) }

func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
