package policyconfig

import (
	"fmt"
	"strings"
)

// Error is one fault found while an organisation's policies were loaded.
type Error struct {
	// Org is the organisation; "" for a fault of the library.
	Org string
	// Policy is the policy at fault, as far as known.
	Policy string
	// File, Row and Col locate the fault; Row is 0 when it has no line.
	File     string
	Row, Col int
	// Path is the setting at fault, below the organisation's section; "" for a
	// fault of its Rego. With a File it is the setting that names the file.
	Path string
	// Message words the fault.
	Message string
	// Cause is the error that the fault follows from; nil for a fault of the text alone.
	Cause error `json:"-"`
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Error is the fault on one line, location first.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		if e.Row > 0 {
			fmt.Fprintf(&b, ":%d:%d", e.Row, e.Col)
		}
		b.WriteString(": ")
	}
	if e.Org != "" {
		fmt.Fprintf(&b, "org %s: ", e.Org)
	}
	if e.Policy != "" {
		fmt.Fprintf(&b, "policy %s: ", e.Policy)
	}
	if e.Path != "" && e.File == "" {
		b.WriteString(e.Path + ": ")
	}
	b.WriteString(e.Message)
	return b.String()
}
