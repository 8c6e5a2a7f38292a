package strictyaml

import (
	"errors"
	"reflect"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// place is a line and a column, both from 1; the zero value is an unknown place.
type place struct{ line, col int }

// Positions knows where in its file each configured value is written. It never changes after [Load], [Positions.Extend], [Positions.Include] and [Positions.SetIncluded], and is safe for concurrent use then. A
// nil *Positions knows nothing.
type Positions struct {
	file       string
	at         map[string]place
	extensions []extension
	included   map[string]*Positions // values that are written in other files, by path
}

// Include is [DecodePartial] of a file with the value at path. p knows afterwards where its parts are written, as file does of itself, and faults
// have the paths that they have below it.
func (p *Positions) Include(name string, data []byte, path string, into any) (file *Positions, err error) {
	file, err = DecodePartial(name, data, into)
	p.SetIncluded(path, file)
	found, _ := errors.AsType[Errors](err)
	if len(found) == 0 {
		return file, nil
	}
	for i := range found {
		found[i].Path = strings.TrimSuffix(path+"."+found[i].Path, ".")
	}
	return file, found
}

// SetIncluded has p know where the parts of the value at path are written, in a file that was included before.
func (p *Positions) SetIncluded(path string, file *Positions) { p.included[path] = file }

// within returns where the value at path is written, if it is in a file that was included.
func (p *Positions) within(path string) (file string, at place, ok bool) {
	whole := path
	for p.included[whole] == nil && whole != "" {
		whole = parent(whole)
	}
	in := p.included[whole]
	switch {
	case in == nil:
		return "", place{}, false
	case whole == path:
		return in.file, place{1, 1}, true
	}
	at, ok = in.at[path[len(whole)+1:]]
	return in.file, at, ok
}

// Contains reports whether the value at path is in the file, or in one that was included.
func (p *Positions) Contains(path string) bool {
	_, ok := p.at[path]
	if !ok {
		_, _, ok = p.within(path)
	}
	return ok
}

// Fill gives the fields of the struct at path that the file does not name the values that they have in defaults.
func Fill[T any](p *Positions, path string, into *T, defaults T) {
	v, from := reflect.ValueOf(into).Elem(), reflect.ValueOf(defaults)
	for _, f := range planOf(v.Type()).fields {
		if !p.Contains(fault.Key(path, f.name)) {
			v.FieldByIndex(f.index).Set(from.FieldByIndex(f.index))
		}
	}
}

// File returns the name the file was loaded under.
func (p *Positions) File() string {
	if p == nil {
		return ""
	}
	return p.file
}

// Lookup returns the file, and the line and column, both from 1, where the value at path is written: of a scalar the value itself, of a
// mapping or a list its key. A path that is not in the file, such as a missing required one, is placed at its nearest ancestor that
// is; 0, 0 means that nothing is known.
func (p *Positions) Lookup(path string) (file string, line, col int) {
	if p == nil {
		return "", 0, 0
	}
	for {
		if at, ok := p.at[path]; ok {
			return p.file, at.line, at.col
		}
		if file, line, ok := p.extended(path); ok {
			return file, line, 1
		}
		if file, at, ok := p.within(path); ok {
			return file, at.line, at.col
		}
		if path == "" {
			return p.file, 0, 0
		}
		path = parent(path)
	}
}

// Locate turns the error of a Validate into [Errors], one [Fault] for each that [fault.List] finds, with the line and column of its
// path. An error without a path becomes a fault of the file as a whole. Errors that already are Errors are
// returned unchanged, and a nil error stays nil.
func Locate(pos *Positions, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[Errors](err); ok {
		return err
	}
	var faults Errors
	for _, f := range fault.List(err) {
		file, line, col := pos.File(), 0, 0
		if f.Path != "" {
			file, line, col = pos.Lookup(f.Path)
		}
		faults = append(faults, Fault{
			File: file, Line: line, Column: col, Path: f.Path, Message: f.Err.Error(), Cause: f.Err,
		})
	}
	return faults.Sort()
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
