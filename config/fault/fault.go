package fault

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Error is a fault of one configured value.
type Error struct {
	// Path is built with [Key] and [Index], for example windows[0].quota. An empty path means the whole configuration.
	Path string
	// Err describes the fault, without the path.
	Err error
}

// Error returns the path and the description of the fault.
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Err.Error()
	}
	return e.Path + ": " + e.Err.Error()
}

// Unwrap returns the fault without its path.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an error about the value at path. It formats the description like [fmt.Errorf].
func Errorf(path, format string, args ...any) error {
	return &Error{Path: path, Err: fmt.Errorf(format, args...)}
}

// Errors is a list of faults.
type Errors []*Error

// Error returns one line per fault.
func (e Errors) Error() string { return Lines(e) }

// Unwrap returns the faults for errors.Is and errors.As.
func (e Errors) Unwrap() []error { return AsErrors(e) }

// Lines returns the texts of errors, one per line.
func Lines[E error](list []E) string {
	lines := make([]string, len(list))
	for i, err := range list {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

// AsErrors returns a list of errors of one type as errors.
func AsErrors[E error](list []E) []error {
	errs := make([]error, len(list))
	for i, err := range list {
		errs[i] = err
	}
	return errs
}

// At returns the faults in err (see [List]) with path prepended to each of their paths. It returns nil if err is nil.
func At(path string, err error) error {
	faults := List(err)
	if len(faults) == 0 {
		return nil
	}
	for i, f := range faults {
		faults[i] = &Error{Path: join(path, f.Path), Err: f.Err}
	}
	return faults
}

// List returns the faults in err and in the errors that err joins or wraps. The path of a nested [Error] includes the paths of the
// enclosing ones. An error without an [Error] becomes a fault with an empty path. If an error wraps a fault with a path, List drops the
// text of the wrapping error.
func List(err error) Errors {
	switch e := err.(type) { //nolint:errorlint // the tree is walked one level at a time
	case nil:
		return nil
	case *Error:
		inner := List(e.Err)
		for i, f := range inner {
			inner[i] = &Error{Path: join(e.Path, f.Path), Err: f.Err}
		}
		return inner
	case interface{ Unwrap() []error }:
		var all Errors
		for _, sub := range e.Unwrap() {
			all = append(all, List(sub)...)
		}
		return all
	case interface{ Unwrap() error }:
		if inner := List(e.Unwrap()); len(inner) > 1 || len(inner) == 1 && inner[0].Path != "" {
			return inner
		}
	}
	return Errors{{Err: err}}
}

// Key returns the path of the value of key in the mapping at path. Keys that are not plain words are quoted, for example prices["NVIDIA
// L4"].
func Key(path, key string) string {
	plain := key != "" && strings.IndexFunc(key, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0
	if !plain {
		return path + "[" + strconv.Quote(key) + "]"
	}
	return join(path, key)
}

// Index returns the path of element i of the list at path, counted from 0.
func Index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func join(path, rest string) string {
	if path == "" || rest == "" || strings.HasPrefix(rest, "[") {
		return path + rest
	}
	return path + "." + rest
}

// Found collects the faults of a configuration. To return them as one error, pass them to [errors.Join].
type Found []error

// If adds a fault of the value at path if bad is true. It formats the description like [fmt.Errorf].
func (f *Found) If(bad bool, path, format string, args ...any) {
	if bad {
		f.Add(path, format, args...)
	}
}

// Add adds a fault of the value at path. It formats the description like [fmt.Errorf].
func (f *Found) Add(path, format string, args ...any) {
	*f = append(*f, Errorf(path, format, args...))
}

// Between adds a fault of the value v at path unless low <= v <= high.
func Between[T cmp.Ordered](f *Found, path string, v, low, high T) {
	f.If(v < low || v > high, path, "must be between %v and %v, got %v", low, high, v)
}
