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
	// Limit names the exceeded limit, or is "".
	Limit string
	// Line and Column locate the error in the document; 0 means unknown.
	Line, Column int
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// at sets the location of e unless it is set. A nil error stays nil.
func (e *Error) at(p *ast.Position) *Error {
	if e != nil && e.Line == 0 && p != nil {
		e.Line, e.Column = p.Line, p.Column
	}
	return e
}

func invalid(message string) *Error { return &Error{Message: message, Code: CodeValidation} }

func badInput(message string) *Error { return &Error{Message: message, Code: CodeBadInput} }

// LimitExceeded returns the error for a request that exceeds a limit of most units. limit is its name in Error.Limit.
func LimitExceeded(limit string, most int, unit string) *Error {
	return &Error{
		Message: "the request exceeds the limit of " + strconv.Itoa(most) + " " + unit, Code: CodeLimit, Limit: limit,
	}
}

// Clip truncates a caller's string to 80 bytes for use in a message.
func Clip(s string) string { return clip(s, 80) }

func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
