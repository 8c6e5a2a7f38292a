package files

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// errUnplaced is the error of a decoded Path whose base directory was not set.
var errUnplaced = errors.New("the directory of the path is not known")

// Path is a setting that names a file or a directory to read. The zero Path names none. A Path is comparable: equal ones lead to the same
// place. [Path.AllowAll], [Path.Confine] or [Path.Deny] decides where it may lead; before that it cannot be read.
type Path struct {
	written string
	base    string // directory that a relative path begins in
	root    string // directory that a confined path stays in
	reach   reach
}

// reach is the right to follow a path.
type reach uint8

const (
	unplaced reach = iota
	anywhere
	confined
	denied
)

// UnrestrictedPath returns a Path to a name that is not from a configuration, relative to the working directory.
func UnrestrictedPath(name string) Path { return Path{written: name, reach: anywhere} }

// ConfinedPath returns a Path to a name in a directory, which no link leads out of.
func ConfinedPath(dir, name string) Path {
	p := Path{written: name}
	p.Confine(dir, dir)
	return p
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (p *Path) UnmarshalText(text []byte) error {
	*p = Path{written: string(text)}
	return nil
}

// MarshalText implements [encoding.TextMarshaler].
func (p Path) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// IsZero reports whether p names nothing.
func (p Path) IsZero() bool { return p.written == "" }

// Text returns the text of the setting.
func (p Path) Text() string { return p.written }

// String returns the path for messages, with the directory that it begins in. Packages other than this one do not open it.
func (p Path) String() string {
	if p.base == "" || filepath.IsAbs(p.written) {
		return p.written
	}
	return filepath.Join(p.base, p.written)
}

// AllowAll lets p lead anywhere, a relative one from base; "" is the working directory.
func (p *Path) AllowAll(base string) { p.place(base, "", anywhere) }

// Confine lets p lead to what is really below the directory root and nowhere else; it is relative to base.
func (p *Path) Confine(base, root string) { p.place(base, root, confined) }

// Deny lets p lead nowhere.
func (p *Path) Deny() { p.place(p.base, "", denied) }

// place leaves the zero Path as it is.
func (p *Path) place(base, root string, r reach) {
	if !p.IsZero() {
		p.base, p.root, p.reach = base, root, r
	}
}

// ErrEscapes is the error of a confined path that leads out of its directory.
var ErrEscapes = errors.New("must stay in the directory of the organisation's file")

// Check reports a path that leads out of the directory that it is confined to. A path to nothing is not reported, nor a denied one, which
// whoever denied it reports.
func (p Path) Check() error {
	if p.IsZero() || p.reach == anywhere || p.reach == denied {
		return nil
	}
	_, err := WithTimeout("stat", p.String(), func() (fs.FileInfo, error) {
		root, name, err := p.open()
		if err != nil {
			return nil, err
		}
		defer func() { _ = root.Close() }() // nothing was written
		info, err := root.Stat(name)
		return info, p.located(err)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// open opens the directory that p is confined to, and returns the name of p below it.
func (p Path) open() (*os.Root, string, error) {
	switch p.reach {
	case confined:
	case denied:
		return nil, "", &fs.PathError{Op: "open", Path: p.String(), Err: fs.ErrPermission}
	case unplaced, anywhere:
		return nil, "", &fs.PathError{Op: "open", Path: p.written, Err: errUnplaced}
	}
	escapes := &fs.PathError{Op: "open", Path: p.String(), Err: ErrEscapes}
	if !filepath.IsLocal(p.written) {
		return nil, "", escapes
	}
	name, err := filepath.Rel(p.root, filepath.Join(p.base, p.written))
	if err != nil || !filepath.IsLocal(name) {
		return nil, "", escapes
	}
	root, err := openRoot(p.root)
	return root, name, err
}

// openRoot is [os.OpenRoot], which would wait for the other end of a named pipe.
func openRoot(name string) (*os.Root, error) {
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		return nil, cmp.Or(err, error(&fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}))
	}
	return os.OpenRoot(name)
}

// located makes the error of an [os.Root] one of p.
func (p Path) located(err error) error {
	if err == nil {
		return nil
	}
	cause := err
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		cause = e.Err
	}
	if cause.Error() == "path escapes from parent" { // package os does not export it
		cause = ErrEscapes
	}
	return &fs.PathError{Op: "open", Path: p.String(), Err: cause}
}

// Read is the function [Read] for a setting.
func (p Path) Read(limit int64) ([]byte, error) {
	if p.reach == anywhere {
		return Read(p.String(), limit)
	}
	return WithTimeout("read", p.String(), func() ([]byte, error) {
		root, name, err := p.open()
		if err != nil {
			return nil, err
		}
		defer func() { _ = root.Close() }() // nothing was written
		data, err := read(root, name, limit)
		return data, p.located(err)
	})
}

// Bounds of a tree.
const (
	// maxTreeEntries bounds the files and directories of a tree.
	maxTreeEntries = 10_000
	// maxTreeDepth bounds how deep its directories are nested.
	maxTreeDepth = 32
)

// Tree reads the wanted files below a directory, by slash-separated path. It follows no link out of the directory, leaves out names
// that begin with a dot, and reads at most total bytes.
func (p Path) Tree(wanted func(base string) bool, total int64) (map[string][]byte, error) {
	return WithTimeout("read", p.String(), func() (map[string][]byte, error) {
		dir, err := p.directory()
		if err != nil {
			return nil, err
		}
		defer func() { _ = dir.Close() }() // nothing was written
		return tree(dir, wanted, total)
	})
}

// directory opens the directory that p leads to.
func (p Path) directory() (*os.Root, error) {
	if p.reach == anywhere {
		return openRoot(p.String())
	}
	root, name, err := p.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()                            // nothing was written
	if info, err := root.Stat(name); err != nil || !info.IsDir() { // to open a named pipe waits for its other end
		return nil, p.located(cmp.Or(err, error(syscall.ENOTDIR)))
	}
	dir, err := root.OpenRoot(name)
	return dir, p.located(err)
}

func tree(dir *os.Root, wanted func(base string) bool, total int64) (map[string][]byte, error) {
	files := map[string][]byte{}
	entries, left := 0, total
	err := fs.WalkDir(dir.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entries++; entries > maxTreeEntries {
			return fmt.Errorf("%w: more than %d files and directories", ErrTooLarge, maxTreeEntries)
		}
		hidden := strings.HasPrefix(d.Name(), ".") && name != "."
		switch {
		case d.IsDir() && (hidden || strings.Count(name, "/") >= maxTreeDepth):
			return fs.SkipDir
		case d.IsDir(), hidden, !wanted(d.Name()):
			return nil
		}
		data, err := read(dir, filepath.FromSlash(name), left)
		if errors.Is(err, ErrTooLarge) {
			return fmt.Errorf("%w: together more than %s bytes", ErrTooLarge, strconv.FormatInt(total, 10))
		}
		left -= int64(len(data))
		files[name] = data
		return err
	})
	return files, err
}
