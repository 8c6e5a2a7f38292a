package strictyaml

import "errors"

// place is a line and a column, both from 1; the zero value is an unknown place.
type place struct{ line, col int }

// Positions knows where in its file each configured value is written. It never changes after [Load] and is safe for concurrent use. A
// nil *Positions knows nothing.
type Positions struct {
	file string
	at   map[string]place
}

// File returns the name the file was loaded under.
func (p *Positions) File() string {
	if p == nil {
		return ""
	}
	return p.file
}

// Of returns the line and column, both from 1, where the value at path is written: of a scalar the value itself, of a mapping or a
// list its key. A path that is not in the file, such as a missing required one, is placed at its nearest ancestor that is; 0, 0
// means that nothing is known.
func (p *Positions) Of(path string) (line, col int) {
	if p == nil {
		return 0, 0
	}
	for {
		if at, ok := p.at[path]; ok {
			return at.line, at.col
		}
		if path == "" {
			return 0, 0
		}
		path = parent(path)
	}
}

// Locate turns the error of a Validate into [Errors], one [Fault] per joined error, each with the line and column of its path. Paths
// are found as [At] finds them; an error without one becomes a fault of the file as a whole. Errors that already are Errors are
// returned unchanged, and a nil error stays nil.
func Locate(pos *Positions, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[Errors](err); ok {
		return err
	}
	var faults Errors
	for _, l := range leaves(err) {
		line, col := 0, 0
		if l.path != "" {
			line, col = pos.Of(l.path)
		}
		faults = append(faults, Fault{
			File: pos.File(), Line: line, Column: col, Path: l.path, Message: l.err.Error(), Cause: l.err,
		})
	}
	return faults.inOrder()
}
