package strictyaml

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Fault is one error in a configuration file.
type Fault struct { //nolint:errname // named as everywhere else, and part of Errors
	// File is the name passed to the decoder.
	File string `json:"file"`
	// Line and Column are 1-based. Column counts characters. Both are 0 if the position is unknown.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Path is the full path of the value, for example orgs[0].keys[1].sha256. An empty Path means the whole file.
	Path string `json:"path,omitempty"`
	// Message describes the fault. It never contains a value that may be secret.
	Message string `json:"message"`
	// Hint says how to correct the fault. It may be empty.
	Hint string `json:"hint,omitempty"`
	// Cause is the error passed to [Locate], or nil.
	Cause error `json:"-"`
}

// Error returns the fault on one line: file:line:column: path: message (hint).
func (f Fault) Error() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", f.Line, f.Column)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	if f.Path != "" {
		b.WriteString(f.Path)
		b.WriteString(": ")
	}
	b.WriteString(f.Message)
	if f.Hint != "" {
		b.WriteString(" (" + f.Hint + ")")
	}
	return b.String()
}

// Unwrap returns the cause.
func (f Fault) Unwrap() error { return f.Cause }

// Errors is a list of faults, in the order of their positions. [Decode], [Load] and [Locate] return errors of this type.
type Errors []Fault

// Error returns one line per fault.
func (e Errors) Error() string { return fault.Lines(e) }

// Unwrap returns the faults for errors.Is and errors.As.
func (e Errors) Unwrap() []error { return fault.AsErrors(e) }

// Sort sorts e in place by position and returns e. The sort is stable.
func (e Errors) Sort() Errors {
	slices.SortStableFunc(e, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return e
}

// Covers reports whether a fault at path may be a consequence of a fault in e. This is the case if e has a fault whose path equals path,
// contains path, or is contained in path.
func (e Errors) Covers(path string) bool {
	within := func(inner, outer string) bool {
		rest, ok := strings.CutPrefix(inner, outer)
		return ok && (rest == "" || outer == "" || rest[0] == '.' || rest[0] == '[')
	}
	return slices.ContainsFunc(e, func(f Fault) bool { return within(path, f.Path) || within(f.Path, path) })
}
