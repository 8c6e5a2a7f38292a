package config

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/config/files"
)

// Inputs records the files and directories where a configuration was read, such as configuration files, files of secrets and policy
// directories, each with a digest. It does not record environment variables. The zero Inputs is empty.
type Inputs struct {
	found map[string]input // by path
	// skip holds name patterns of directories to ignore in the tree of an input.
	skip []string
}

// input is a file, a directory or a glob pattern.
type input struct {
	digest digest
	// stat is the information of a file whose content is unchanged as long as its size, modification time and identity are unchanged. It is
	// nil for all other inputs.
	stat fs.FileInfo
	// read reads an input file again, with the restrictions that applied to the first read. It is nil for directories and patterns.
	read source
	// pattern is set for a glob pattern, whose digest covers the matching names.
	pattern bool
}

// Tree returns Inputs for the directory tree dir, with which a command can [Watch] a directory instead of a configuration file. The Inputs
// ignore directories whose names match a pattern in skip; see [filepath.Match] for patterns.
func Tree(dir string, skip ...string) Inputs {
	in := Inputs{skip: skip}
	in.directory(dir)
	return in
}

// holds reports whether stat shows that the file is unchanged since it was read.
func (i input) holds(stat fs.FileInfo) bool {
	return i.stat != nil && os.SameFile(i.stat, stat) && i.stat.Size() == stat.Size() && i.stat.ModTime().Equal(stat.ModTime())
}

// digest is the SHA-256 digest of an input.
type digest [sha256.Size]byte

func (in *Inputs) set(path string, i input) {
	if in.found == nil {
		in.found = make(map[string]input)
	}
	in.found[path] = i
}

// add adds a directory or pattern, with its state at the time of the first call.
func (in *Inputs) add(path string, i input) {
	if _, had := in.found[path]; !had {
		i.digest = in.digestOf(path, i)
		in.set(path, i)
	}
}

// pattern adds a glob pattern to the inputs.
func (in *Inputs) pattern(pattern string) { in.add(pattern, input{pattern: true}) }

// directory adds a directory to the inputs.
func (in *Inputs) directory(path string) { in.add(path, input{}) }

// source reads an input file.
type source func() ([]byte, error)

// read reads a file and adds it to the inputs. It deducts the size of the file and the time spent from the allowance.
func (in *Inputs) read(p files.Path, read source, a *allowance) ([]byte, error) {
	name := p.String()
	if a.time <= 0 {
		err := fmt.Errorf("%w: reading the previous files took %s", files.ErrTooSlow, readTime)
		return nil, &fs.PathError{Op: "read", Path: name, Err: err} // nothing was learned about the file
	}
	started := time.Now()
	stat, serr := files.Stat(name) // before the read, so that the next check notices a change during the read
	data, err := read()
	a.time -= time.Since(started)
	in.set(name, input{digest: contentOf(data, err), stat: settled(stat, serr), read: read})
	if a.bytes -= len(data); a.bytes < 0 && err == nil {
		err = fmt.Errorf("%w: the files of the configuration or organisation exceed the limit of their total size", files.ErrTooLarge)
		err = &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return data, err
}

// reuse copies the entry of a file from the previous inputs and returns true if the size, modification time and identity of the file are
// unchanged.
func (in *Inputs) reuse(name string, before *Inputs) bool {
	i := before.found[name]
	if i.stat == nil {
		return false
	}
	if stat, err := files.Stat(name); err != nil || !i.holds(stat) {
		return false
	}
	in.set(name, i)
	return true
}

// paths lists the files that were read.
func (in *Inputs) paths() []string {
	return slices.DeleteFunc(slices.Collect(maps.Keys(in.found)), func(path string) bool { return in.found[path].read == nil })
}

// tick is longer than the timestamp resolution of file systems. If a file is written twice within a tick, the content may change without a
// change of the modification time.
const tick = 2 * time.Second

// settled returns stat for a regular file that was last written more than a tick ago, and nil for everything else.
func settled(stat fs.FileInfo, err error) fs.FileInfo {
	if err != nil || !stat.Mode().IsRegular() || time.Since(stat.ModTime()) <= tick {
		return nil
	}
	return stat
}

// current returns Inputs with the current digests of the same files and directories. It does not read files whose size, modification time
// and identity are unchanged.
func (in Inputs) current() Inputs {
	now := Inputs{skip: in.skip}
	for path, i := range in.found {
		stat, err := files.Stat(path)
		if err != nil || !i.holds(stat) {
			i.digest = in.digestOf(path, i)
		}
		i.stat = settled(stat, err)
		now.set(path, i)
	}
	return now
}

func (in Inputs) equal(o Inputs) bool {
	return maps.EqualFunc(in.found, o.found, func(a, b input) bool { return a.digest == b.digest })
}

// directories returns the directories to watch for changes of the inputs. For each path, these are its parent directory, the parent
// directory of the target if the path is a symbolic link, and all subdirectories if the path is a directory.
func (in Inputs) directories() []string {
	var dirs []string
	for path := range in.found {
		dirs = append(dirs, filepath.Dir(path))
		more, _ := files.WithTimeout("stat", path, func() ([]string, error) { return in.below(path), nil }) // a path that does not answer has no directories
		dirs = append(dirs, more...)
	}
	return dirs
}

// below returns the parent directory of the target of path, and all subdirectories of the target.
func (in Inputs) below(path string) []string {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil
	}
	dirs := []string{filepath.Dir(target)}
	if stat, err := os.Stat(target); err != nil || !stat.IsDir() {
		return dirs
	}
	in.walk(target, func(name string, d fs.DirEntry, err error) {
		if err == nil && d.IsDir() {
			dirs = append(dirs, name)
		}
	})
	return dirs
}

// maxEntries is the maximum number of files and directories examined in the tree of an input.
const maxEntries = 20_000

// walk calls visit for the files and directories in the tree root, which must not be a symbolic link, except ignored directories.
func (in Inputs) walk(root string, visit func(name string, d fs.DirEntry, err error)) {
	entries := 0
	_ = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if entries++; entries > maxEntries {
			return filepath.SkipAll
		}
		if name != root && d != nil && d.IsDir() && slices.ContainsFunc(in.skip, func(pattern string) bool {
			match, err := filepath.Match(pattern, d.Name())
			return match && err == nil
		}) {
			return filepath.SkipDir
		}
		visit(name, d, err)
		return nil // loading reports unreadable files
	})
}

// digestOf returns the digest of a file's content, or the digest of the names, sizes and times of all files in a directory tree. The digest
// of an unreadable input differs from the digests of all readable inputs.
func (in Inputs) digestOf(path string, i input) digest {
	if i.read != nil {
		return contentOf(i.read())
	}
	d, err := files.WithTimeout("stat", path, func() (digest, error) {
		if i.pattern {
			names, err := filepath.Glob(path)
			return contentOf([]byte(strings.Join(names, "\x00")), err), nil
		}
		target, err := filepath.EvalSymlinks(path) // WalkDir does not follow links, not even for the root
		if err != nil {
			return digest{}, err
		}
		return in.treeDigest(target), nil
	})
	if err != nil {
		return contentOf(nil, err)
	}
	return d
}

// treeDigest is digestOf for a directory that is not a symbolic link.
func (in Inputs) treeDigest(target string) digest {
	h := sha256.New()
	in.walk(target, func(name string, _ fs.DirEntry, err error) {
		var stat fs.FileInfo
		if err == nil {
			stat, err = os.Stat(name)
		}
		switch { // writing to a hash cannot fail
		case err != nil:
			_, _ = fmt.Fprintf(h, "%q %q\n", name, err)
		case stat.IsDir(): // its times and size also change with skipped entries
			_, _ = fmt.Fprintf(h, "%q %s\n", name, stat.Mode())
		default:
			_, _ = fmt.Fprintf(h, "%q %d %d %s\n", name, stat.Size(), stat.ModTime().UnixNano(), stat.Mode())
		}
	})
	return digest(h.Sum(nil))
}

func contentOf(data []byte, err error) digest {
	if err != nil {
		return sha256.Sum256([]byte("cannot be read: " + err.Error()))
	}
	return sha256.Sum256(append([]byte("read: "), data...))
}
