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

// Inputs records everything that a configuration was read from, except the environment: its file, the files of its secrets, and its policy
// directories, each with a digest. The zero Inputs is empty.
type Inputs struct {
	seen map[string]digest
	// known holds files whose content cannot have changed while size, modification time and identity are the same.
	known map[string]reading
	// sources read the input files again, with the restrictions that applied to the first read.
	sources map[string]source
	// patterns are the keys of seen that are glob patterns. The digest of a pattern covers the matching names.
	patterns []string
	// skip holds patterns of directory names to leave out below an input.
	skip []string
}

// Tree returns Inputs that cover a directory, so that Watch can serve commands that read a directory instead of a configuration file. It
// covers everything below dir except directories whose names match a pattern of skip, as defined by [filepath.Match].
func Tree(dir string, skip ...string) Inputs {
	in := Inputs{skip: skip}
	in.add(dir, in.digestOf(dir))
	return in
}

// reading is the digest and file information of a file that was read.
type reading struct {
	digest digest
	stat   fs.FileInfo
}

// holds reports whether a file with information stat is unchanged since it was read.
func (r reading) holds(stat fs.FileInfo) bool {
	return os.SameFile(r.stat, stat) && r.stat.Size() == stat.Size() && r.stat.ModTime().Equal(stat.ModTime())
}

// digest is the SHA-256 digest of an input.
type digest [sha256.Size]byte

func (in *Inputs) add(path string, d digest) {
	if in.seen == nil {
		in.seen, in.known, in.sources = make(map[string]digest), make(map[string]reading), make(map[string]source)
	}
	in.seen[path] = d
}

// source reads an input file.
type source func() ([]byte, error)

// read reads a file and adds it to the inputs. It deducts the size and the time from the allowance.
func (in *Inputs) read(p files.Path, read source, a *allowance) ([]byte, error) {
	name := p.String()
	if a.time <= 0 {
		return nil, a.tooSlow(name) // nothing was learned about the file
	}
	started := time.Now()
	stat, serr := files.Stat(name) // before the read, so that the next check notices a change during the read
	data, err := read()
	a.time -= time.Since(started)
	in.add(name, contentOf(data, err))
	in.sources[name] = read
	if serr == nil && stat.Mode().IsRegular() && time.Since(stat.ModTime()) > tick {
		in.known[name] = reading{in.seen[name], stat}
	}
	if a.bytes -= len(data); a.bytes < 0 && err == nil {
		err = a.tooLarge(name)
	}
	return data, err
}

// reuse copies the entry of a file from the previous inputs if its size, modification time and identity are unchanged. It reports whether it
// did.
func (in *Inputs) reuse(name string, before *Inputs) bool {
	r, known := before.known[name]
	if !known {
		return false
	}
	if stat, err := files.Stat(name); err != nil || !r.holds(stat) {
		return false
	}
	in.add(name, r.digest)
	in.sources[name], in.known[name] = before.sources[name], r
	return true
}

// paths lists the files that were read.
func (in *Inputs) paths() []string { return slices.Collect(maps.Keys(in.sources)) }

// pattern adds a glob pattern to the inputs. Its digest covers the matching names at the time of the first call.
func (in *Inputs) pattern(pattern string) {
	if slices.Contains(in.patterns, pattern) {
		return
	}
	in.patterns = append(in.patterns, pattern)
	in.add(pattern, in.digestOf(pattern))
}

// directory adds a directory to the inputs, with its state at the time of the first call.
func (in *Inputs) directory(path string) {
	if _, had := in.seen[path]; !had {
		in.add(path, in.digestOf(path))
	}
}

// tick is longer than the timestamp resolution of file systems. A file that is written twice within a tick may have the same modification
// time with different content.
const tick = 2 * time.Second

// current returns the current state of the same inputs. It does not read files whose size, modification time and identity are unchanged.
func (in Inputs) current() Inputs {
	now := Inputs{skip: in.skip, patterns: in.patterns}
	for path := range in.seen {
		stat, err := files.Stat(path)
		before, known := in.known[path]
		if err != nil || !known || !before.holds(stat) {
			before = reading{in.digestOf(path), stat}
		}
		now.add(path, before.digest)
		if read, ok := in.sources[path]; ok {
			now.sources[path] = read
		}
		if err == nil && stat.Mode().IsRegular() && time.Since(stat.ModTime()) > tick {
			now.known[path] = before
		}
	}
	return now
}

func (in Inputs) equal(o Inputs) bool { return maps.Equal(in.seen, o.seen) }

// directories returns the directories to watch for changes of an input: the directory of each path and, since paths may be symbolic links,
// the directory of the target, and all directories below a directory.
func (in Inputs) directories() []string {
	var dirs []string
	for path := range in.seen {
		dirs = append(dirs, filepath.Dir(path))
		more, _ := files.WithTimeout("stat", path, func() ([]string, error) { return in.below(path), nil }) // a path that does not answer has no directories
		dirs = append(dirs, more...)
	}
	return dirs
}

// below returns the directory of the target of path, and all directories below the target.
func (in Inputs) below(path string) []string {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil
	}
	dirs, entries := []string{filepath.Dir(target)}, 0
	if stat, err := os.Stat(target); err != nil || !stat.IsDir() {
		return dirs
	}
	_ = filepath.WalkDir(target, func(name string, d fs.DirEntry, err error) error {
		if entries++; entries > maxEntries {
			return filepath.SkipAll
		}
		if in.skips(target, name, d) {
			return filepath.SkipDir
		}
		if err == nil && d.IsDir() {
			dirs = append(dirs, name)
		}
		return nil // loading reports unreadable files
	})
	return dirs
}

// skips reports whether a directory below root is left out.
func (in Inputs) skips(root, name string, d fs.DirEntry) bool {
	return name != root && d != nil && d.IsDir() && slices.ContainsFunc(in.skip, func(pattern string) bool {
		match, err := filepath.Match(pattern, d.Name())
		return match && err == nil
	})
}

// digestOf returns the digest of a file's content, or of the names, sizes and times of everything below a directory. The digest of an
// unreadable input differs from every digest of a readable one.
func (in Inputs) digestOf(path string) digest {
	if read, ok := in.sources[path]; ok {
		return contentOf(read())
	}
	d, err := files.WithTimeout("stat", path, func() (digest, error) {
		if slices.Contains(in.patterns, path) {
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

// maxEntries limits the files and directories examined below an input.
const maxEntries = 20_000

// treeDigest implements digestOf for a directory that is not a symbolic link.
func (in Inputs) treeDigest(target string) digest {
	h, entries := sha256.New(), 0
	_ = filepath.WalkDir(target, func(name string, d fs.DirEntry, err error) error {
		if entries++; entries > maxEntries {
			return filepath.SkipAll
		}
		if in.skips(target, name, d) {
			return filepath.SkipDir
		}
		var stat fs.FileInfo
		if err == nil {
			stat, err = os.Stat(name)
		}
		if err != nil {
			_, _ = fmt.Fprintf(h, "%q %q\n", name, err) // writing to a hash cannot fail
			return nil
		}
		if stat.IsDir() { // its times and size also change with skipped entries
			_, _ = fmt.Fprintf(h, "%q %s\n", name, stat.Mode())
			return nil
		}
		_, _ = fmt.Fprintf(h, "%q %d %d %s\n", name, stat.Size(), stat.ModTime().UnixNano(), stat.Mode())
		return nil
	})
	return digest(h.Sum(nil))
}

func contentOf(data []byte, err error) digest {
	if err != nil {
		return sha256.Sum256([]byte("cannot be read: " + err.Error()))
	}
	return sha256.Sum256(append([]byte("read: "), data...))
}
