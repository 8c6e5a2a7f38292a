package strictyaml

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing wrong with a configuration file.
type Fault struct { //nolint:errname // a fault is what it is called everywhere, and part of Errors
	// File is the name the file was decoded under.
	File string `json:"file"`
	// Line and Column start at 1, columns count characters. Both are 0 when the place is not known.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Path names the value from the top, such as orgs[0].keys[1].sha256. It is empty for faults of the file as a whole.
	Path string `json:"path,omitempty"`
	// Message describes the fault. It never repeats a value that may be secret.
	Message string `json:"message"`
	// Hint says what to do about it. It may be empty.
	Hint string `json:"hint,omitempty"`
	// Cause is the error the fault was made from by [Locate], if any.
	Cause error `json:"-"`
}

// Error renders the fault on one line: file:line:column: path: message (hint).
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

// Errors holds every fault found, in the order of the file. It is the type of all errors returned by [Decode], [Load] and [Locate].
type Errors []Fault

// Error renders one fault per line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, f := range e {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the faults one by one, for [errors.Is] and [errors.As].
func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, f := range e {
		errs[i] = f
	}
	return errs
}

// Sort sorts by place, keeping the order of faults at one place, and returns e.
func (e Errors) Sort() Errors {
	slices.SortStableFunc(e, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return e
}

// Covers reports whether a fault at path may only follow from one of these: one of the same path, of a part of it, or of a whole that
// contains it.
func (e Errors) Covers(path string) bool {
	within := func(inner, outer string) bool {
		rest, ok := strings.CutPrefix(inner, outer)
		return ok && (rest == "" || outer == "" || rest[0] == '.' || rest[0] == '[')
	}
	return slices.ContainsFunc(e, func(f Fault) bool { return within(path, f.Path) || within(f.Path, path) })
}
