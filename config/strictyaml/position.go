package strictyaml

import (
	"errors"
	"reflect"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// place is a 1-based line and column. The zero value means an unknown position.
type place struct{ line, col int }

// Positions records the position of each value of a configuration in its file. Methods other than [Positions.Extend], [Positions.Include]
// and [Positions.SetIncluded] can be called concurrently. A nil *Positions is empty.
type Positions struct {
	file       string
	at         map[string]place
	extensions []extension
	included   map[string]*Positions // positions of values in other files, by path
}

// Include decodes data, the content of the file called name, into the value that into points to, like [DecodePartial]. path is the path of
// this value in the whole configuration. The faults that Include returns have paths in the whole configuration. Include adds the positions
// of the file's values to p. It also returns these positions, with paths relative to the file.
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

// SetIncluded adds positions that an earlier call of [Positions.Include] returned for the value at path.
func (p *Positions) SetIncluded(path string, file *Positions) { p.included[path] = file }

// within returns the position of a value in an included file. ok is false for all other paths.
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

// Contains reports whether the file or an included file contains a value at path.
func (p *Positions) Contains(path string) bool {
	_, ok := p.at[path]
	if !ok {
		_, _, ok = p.within(path)
	}
	return ok
}

// Fill sets the fields of the struct that into points to, which is the value at path. Each field that the file omits gets its value in
// defaults.
func Fill[T any](p *Positions, path string, into *T, defaults T) {
	v, from := reflect.ValueOf(into).Elem(), reflect.ValueOf(defaults)
	for _, f := range planOf(v.Type()).fields {
		if !p.Contains(fault.Key(path, f.name)) {
			v.FieldByIndex(f.index).Set(from.FieldByIndex(f.index))
		}
	}
}

// Lookup returns the file, line and column of the value at path. Line and column are 1-based. The position of a mapping or list is the
// position of its key. If the file has no value at path, Lookup returns the position of the nearest enclosing value. Line and column are 0
// if the position is unknown.
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

// Locate converts the error of a Validate method to [Errors]. For each fault that [fault.List] finds in err, the result contains a [Fault]
// with the position of the fault's path. An error without a path becomes a fault of the whole file. Locate returns nil if err is nil, and
// returns err unchanged if it is already an [Errors].
func Locate(pos *Positions, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[Errors](err); ok {
		return err
	}
	var faults Errors
	for _, f := range fault.List(err) {
		file, line, col := pos.Lookup(f.Path)
		if f.Path == "" { // the whole file
			line, col = 0, 0
		}
		faults = append(faults, Fault{
			File: file, Line: line, Column: col, Path: f.Path, Message: f.Err.Error(), Cause: f.Err,
		})
	}
	return faults.Sort()
}

// parent removes the last element of a path. The parent of a top-level key is the empty path.
func parent(path string) string {
	if !strings.HasSuffix(path, "]") {
		return path[:max(0, strings.LastIndexByte(path, '.'))]
	}
	// A quoted key may contain brackets and dots. Its opening quote is the last unescaped quote before the closing one.
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
