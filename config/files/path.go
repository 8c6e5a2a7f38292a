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

// errUnplaced is returned for a decoded Path whose base directory was not set.
var errUnplaced = errors.New("base directory of the path not set")

// Path is a setting that names a file or directory to read. The zero Path names no file. Call [Path.AllowAll], [Path.Confine] or
// [Path.Deny] on a decoded Path before you use it. Paths are comparable: equal Paths name the same file.
type Path struct {
	written string
	base    string // base directory of a relative path
	root    string // directory that a confined path must stay in
	reach   reach
}

// reach says where a path may lead.
type reach uint8

const (
	unplaced reach = iota
	anywhere
	confined
	denied
)

// UnrestrictedPath returns a Path that may lead anywhere, for names that do not come from a configuration. A relative name is resolved
// against the working directory.
func UnrestrictedPath(name string) Path { return Path{written: name, reach: anywhere} }

// ConfinedPath returns a Path for the file name in dir. The Path never leads out of dir, not even through a symbolic link.
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

// IsZero reports whether p is the zero Path.
func (p Path) IsZero() bool { return p.written == "" }

// Text returns the path as written in the configuration.
func (p Path) Text() string { return p.written }

// String returns the path joined to its base directory, for messages. Other packages must open the file with the methods of Path, not by
// this name.
func (p Path) String() string {
	if p.base == "" || filepath.IsAbs(p.written) {
		return p.written
	}
	return filepath.Join(p.base, p.written)
}

// AllowAll permits p to lead anywhere. A relative path is resolved against base, or against the working directory if base is empty.
func (p *Path) AllowAll(base string) { p.place(base, "", anywhere) }

// Confine permits p to lead only to files in the directory tree root, after symbolic links are resolved. A relative path is resolved
// against base.
func (p *Path) Confine(base, root string) { p.place(base, root, confined) }

// Deny forbids reading p.
func (p *Path) Deny() { p.place(p.base, "", denied) }

// place sets the base, root and reach of p. It does nothing if p is the zero Path.
func (p *Path) place(base, root string, r reach) {
	if !p.IsZero() {
		p.base, p.root, p.reach = base, root, r
	}
}

// ErrEscapes is returned for a confined Path that leads out of its root directory.
var ErrEscapes = errors.New("must stay in the directory of the organisation's file")

// Check returns an error if p is confined and resolves to a file outside its root directory. It returns nil if the file does not exist. It
// also returns nil after a call of [Path.Deny], because the caller of Deny reports the error.
func (p Path) Check() error {
	if p.IsZero() || p.reach == anywhere || p.reach == denied {
		return nil
	}
	_, err := WithTimeout("stat", p.String(), func() (fs.FileInfo, error) {
		root, name, err := p.open()
		if err != nil {
			return nil, err
		}
		defer func() { _ = root.Close() }() // opened for reading only
		info, err := root.Stat(name)
		return info, p.located(err)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// open opens the directory that p is confined to, and returns the name of p relative to it.
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

// openRoot is like [os.OpenRoot], but does not block on a named pipe.
func openRoot(name string) (*os.Root, error) {
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		return nil, cmp.Or(err, error(&fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}))
	}
	return os.OpenRoot(name)
}

// located converts an error of an [os.Root] to an error about p.
func (p Path) located(err error) error {
	if err == nil {
		return nil
	}
	cause := Cause(err)
	if cause.Error() == "path escapes from parent" { // not exported by package os
		cause = ErrEscapes
	}
	return &fs.PathError{Op: "open", Path: p.String(), Err: cause}
}

// Read returns the content of the file at p. The parameter limit and the errors are the same as for the function [Read].
func (p Path) Read(limit int64) ([]byte, error) {
	if p.reach == anywhere {
		return Read(p.String(), limit)
	}
	return WithTimeout("read", p.String(), func() ([]byte, error) {
		root, name, err := p.open()
		if err != nil {
			return nil, err
		}
		defer func() { _ = root.Close() }() // opened for reading only
		data, err := read(root, name, limit)
		return data, p.located(err)
	})
}

// Limits of [Path.Tree].
const (
	// maxTreeEntries is the maximum number of files and directories in a tree.
	maxTreeEntries = 10_000
	// maxTreeDepth is the maximum nesting of directories in a tree.
	maxTreeDepth = 32
)

// Tree reads files in the directory tree at p. The result maps slash-separated paths to the contents of the files. Tree calls wanted with
// the base name of each file, and reads the file if wanted returns true. Tree skips files and directories whose names begin with a dot, and
// does not follow symbolic links out of the directory. It returns an error if the total size of the files exceeds total bytes.
func (p Path) Tree(wanted func(base string) bool, total int64) (map[string][]byte, error) {
	return WithTimeout("read", p.String(), func() (map[string][]byte, error) {
		dir, err := p.directory()
		if err != nil {
			return nil, err
		}
		defer func() { _ = dir.Close() }() // opened for reading only
		return tree(dir, wanted, total)
	})
}

// directory opens the directory at p.
func (p Path) directory() (*os.Root, error) {
	if p.reach == anywhere {
		return openRoot(p.String())
	}
	root, name, err := p.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()                            // opened for reading only
	if info, err := root.Stat(name); err != nil || !info.IsDir() { // opening a named pipe would block
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
			return fmt.Errorf("%w: more than %s bytes in total", ErrTooLarge, strconv.FormatInt(total, 10))
		}
		left -= int64(len(data))
		files[name] = data
		return err
	})
	return files, err
}
