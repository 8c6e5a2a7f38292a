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

// Inputs are the sources of a configuration besides the environment: its file,
// the files of its secrets and its directories of policies, each with its state
// when it was read. The zero Inputs is of no configuration.
type Inputs struct {
	seen map[string]digest
	// known are the files whose content cannot change without their size, time or identity.
	known map[string]reading
	// sources read the files among the inputs as they were read, within the directory that a path is confined to.
	sources map[string]source
	// patterns are those of seen that stand for the names that they match.
	patterns []string
	// skip has patterns of the names of directories below an input that are left out.
	skip []string
}

// Tree returns the inputs of a program that reads a directory: everything below it but the directories whose names match one of the
// patterns of [filepath.Match].
func Tree(dir string, skip ...string) Inputs {
	in := Inputs{skip: skip}
	in.add(dir, in.digestOf(dir))
	return in
}

// reading is the state of a file when it was read.
type reading struct {
	digest digest
	stat   fs.FileInfo
}

// holds reports whether a file whose state is stat has not changed since it was read.
func (r reading) holds(stat fs.FileInfo) bool {
	return os.SameFile(r.stat, stat) && r.stat.Size() == stat.Size() && r.stat.ModTime().Equal(stat.ModTime())
}

// digest stands for the content of an input.
type digest [sha256.Size]byte

func (in *Inputs) add(path string, d digest) {
	if in.seen == nil {
		in.seen, in.known, in.sources = make(map[string]digest), make(map[string]reading), make(map[string]source)
	}
	in.seen[path] = d
}

// source reads a file that is an input.
type source func() ([]byte, error)

// read reads a file, which becomes one of the inputs. It spends the size of the file.
func (in *Inputs) read(p files.Path, read source, a *allowance) ([]byte, error) {
	name := p.String()
	if a.time <= 0 {
		return nil, a.tooSlow(name) // nothing is known of the file
	}
	started := time.Now()
	stat, serr := files.Stat(name) // before it is read: a change meanwhile shows in the next one
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

// keep makes a file one of the inputs with the content that it had among the inputs before, unless its size, time or identity has changed.
func (in *Inputs) keep(name string, before *Inputs) bool {
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

// pattern makes the names that a pattern matches one of the inputs, as they were when it was first made one.
func (in *Inputs) pattern(pattern string) {
	if slices.Contains(in.patterns, pattern) {
		return
	}
	in.patterns = append(in.patterns, pattern)
	in.add(pattern, in.digestOf(pattern))
}

// directory makes a directory one of the inputs, as it was when it was first made one.
func (in *Inputs) directory(path string) {
	if _, had := in.seen[path]; !had {
		in.add(path, in.digestOf(path))
	}
}

// tick is longer than the steps in which file systems tell times: a file that was written
// twice within it may have one time and two contents.
const tick = 2 * time.Second

// look returns the same inputs as they are now. Files whose size, time and identity are
// unchanged are not read again.
func (in Inputs) look() Inputs {
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

// directories are those in which a change of an input shows: where a file or a
// directory is, as either may be replaced, and where it really is, if that is
// another place, and everything below a directory.
func (in Inputs) directories() []string {
	var dirs []string
	for path := range in.seen {
		dirs = append(dirs, filepath.Dir(path))
		more, _ := files.WithTimeout("stat", path, func() ([]string, error) { return in.below(path), nil }) // none of a path that does not answer
		dirs = append(dirs, more...)
	}
	return dirs
}

// below returns the directory that an input is really in, and those below it.
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
		return nil // an unreadable file is a fault when it is loaded
	})
	return dirs
}

// skips reports whether a directory below an input is left out.
func (in Inputs) skips(root, name string, d fs.DirEntry) bool {
	return name != root && d != nil && d.IsDir() && slices.ContainsFunc(in.skip, func(pattern string) bool {
		match, err := filepath.Match(pattern, d.Name())
		return match && err == nil
	})
}

// digestOf is that of a file's content, or of the names, sizes and times of the entries
// below a directory. An input that cannot be read differs from any that can.
func (in Inputs) digestOf(path string) digest {
	if read, ok := in.sources[path]; ok {
		return contentOf(read())
	}
	d, err := files.WithTimeout("stat", path, func() (digest, error) {
		if slices.Contains(in.patterns, path) {
			names, err := filepath.Glob(path)
			return contentOf([]byte(strings.Join(names, "\x00")), err), nil
		}
		target, err := filepath.EvalSymlinks(path) // WalkDir follows no link, not even the first
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

// maxEntries bounds the files and directories below an input that are looked at.
const maxEntries = 20_000

// treeDigest is digestOf for a directory that is no link.
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
			_, _ = fmt.Fprintf(h, "%q %q\n", name, err) // a hash takes everything
			return nil
		}
		if stat.IsDir() { // its times and size change with entries that are skipped, too
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
