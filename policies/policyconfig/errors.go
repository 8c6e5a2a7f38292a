package policyconfig

import (
	"fmt"
	"strings"
)

// Error is a fault found while loading an organisation's policies.
type Error struct {
	// Org is the organisation, or "" for a fault of the library.
	Org string
	// Policy is the policy that contains the fault, if known.
	Policy string
	// File, Row and Col are the position of the fault. Row is 0 if the line is unknown.
	File     string
	Row, Col int
	// Path is the faulty setting, relative to the organisation's configuration, or "" for a fault in Rego. If File is set, Path is the setting
	// that names the file.
	Path string
	// Message describes the fault.
	Message string
	// Cause is the underlying error, or nil.
	Cause error `json:"-"`
}

// Joined returns the errors that err joins, directly or indirectly, or err itself if it joins none.
func Joined(err error) (out []error) {
	many, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !ok:
		return []error{err}
	}
	for _, e := range many.Unwrap() {
		out = append(out, Joined(e)...)
	}
	return out
}

// Unwrap returns Cause.
func (e *Error) Unwrap() error { return e.Cause }

// Error returns the fault on one line, position first.
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
