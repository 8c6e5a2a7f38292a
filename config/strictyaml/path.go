package strictyaml

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// PathError is a fault of one configured value, found after decoding. Path is relative to whatever the reporting package calls its
// configuration; each level above puts its own part in front with [At].
type PathError struct {
	// Path is as made by [Key] and [Index], such as windows[0].quota.
	Path string
	// Err says what is wrong, without the path.
	Err error
}

// Error returns the path and what is wrong.
func (e *PathError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *PathError) Unwrap() error { return e.Err }

// pather is the form of a located error for packages that do not import this one. Its Error text may begin with the path, or not.
type pather interface {
	error
	Path() string
}

// At puts path in front of the path of every fault within err: of [PathError], of errors with a Path() string method, and of those
// joined by [errors.Join] or wrapped by fmt.Errorf. A fault without a path gets path itself. At of a nil error is nil.
//
// Text that a wrapper put around faults with a path is dropped: the path says where, better.
func At(path string, err error) error {
	var errs []error
	for _, l := range leaves(err) {
		errs = append(errs, &PathError{Path: join(path, l.path), Err: l.err})
	}
	return Join(errs...)
}

// Atf is [At] of a fault made in place.
func Atf(path, format string, args ...any) error {
	return &PathError{Path: path, Err: fmt.Errorf(format, args...)}
}

// Join is [errors.Join] that returns a single error as it is.
func Join(errs ...error) error {
	var only error
	n := 0
	for _, err := range errs {
		if err != nil {
			only = err
			n++
		}
	}
	if n <= 1 {
		return only
	}
	return errors.Join(errs...)
}

// Key is the path of the value under key in the mapping at path. Keys that are not plain words are quoted: prices["NVIDIA L4"].
func Key(path, key string) string {
	if !plainKey(key) {
		return path + "[" + strconv.Quote(key) + "]"
	}
	return join(path, key)
}

// Index is the path of element i, from 0, of the list at path.
func Index(path string, i int) string {
	return path + "[" + strconv.Itoa(i) + "]"
}

func plainKey(key string) bool {
	for _, r := range key {
		if r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
			return false
		}
	}
	return key != ""
}

func join(path, rest string) string {
	if path == "" || rest == "" || strings.HasPrefix(rest, "[") {
		return path + rest
	}
	return path + "." + rest
}

// parent cuts the last part off a path; the parent of a top-level key is the empty path.
func parent(path string) string {
	if !strings.HasSuffix(path, "]") {
		return path[:max(0, strings.LastIndexByte(path, '.'))]
	}
	// A quoted key may hold brackets and dots: its opening quote is the last unescaped one before the closing quote.
	if i := len(path) - 2; i >= 0 && path[i] == '"' {
		for i--; i > 0; i-- {
			if path[i] == '"' && path[i-1] == '[' {
				if _, err := strconv.Unquote(path[i : len(path)-1]); err == nil {
					return path[:i-1]
				}
			}
		}
		return ""
	}
	return path[:max(0, strings.LastIndexByte(path, '['))]
}

type leaf struct {
	path string
	err  error // without the path in its text
}

// leaves flattens an error into the faults it holds.
func leaves(err error) []leaf {
	if err == nil {
		return nil
	}
	switch e := err.(type) { //nolint:errorlint // the tree is walked level by level, on purpose
	case *PathError:
		inner := leaves(e.Err)
		for i := range inner {
			inner[i].path = join(e.Path, inner[i].path)
		}
		return inner
	case *told:
		return []leaf{{err: e}} // its path has been taken
	case pather:
		return []leaf{{path: e.Path(), err: untold(e)}}
	case interface{ Unwrap() []error }:
		var all []leaf
		for _, sub := range e.Unwrap() {
			all = append(all, leaves(sub)...)
		}
		return all
	case interface{ Unwrap() error }:
		if inner := leaves(e.Unwrap()); len(inner) > 1 || len(inner) == 1 && inner[0].path != "" {
			return inner
		}
	}
	return []leaf{{err: err}}
}

// untold is e with the path cut off its text, where the text begins with it.
func untold(e pather) error {
	if text, ok := strings.CutPrefix(e.Error(), e.Path()+": "); ok && e.Path() != "" {
		return &told{text: text, err: e}
	}
	return e
}

// told is an error under another text.
type told struct {
	text string
	err  error
}

func (t *told) Error() string { return t.text }
func (t *told) Unwrap() error { return t.err }
