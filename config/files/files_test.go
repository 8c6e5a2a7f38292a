package files_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tollgate-dev/tollgate/config/files"
)

// place makes a directory with a file, a large file, a named pipe, a directory, and links to files inside and outside.
func place(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	inside, outside := filepath.Join(dir, "own"), filepath.Join(dir, "secret")
	err := errors.Join(
		os.MkdirAll(filepath.Join(inside, "tree", ".hidden"), 0o700),
		os.WriteFile(outside, []byte("secret"), 0o600),
		os.WriteFile(filepath.Join(inside, "file"), []byte("content"), 0o600),
		os.WriteFile(filepath.Join(inside, "large"), []byte(strings.Repeat("x", 101)), 0o600),
		os.WriteFile(filepath.Join(inside, "tree", "a.rego"), []byte("a"), 0o600),
		os.WriteFile(filepath.Join(inside, "tree", ".hidden", "b.rego"), []byte("b"), 0o600),
		syscall.Mkfifo(filepath.Join(inside, "pipe"), 0o600),
		os.Symlink("file", filepath.Join(inside, "link")),
		os.Symlink("../secret", filepath.Join(inside, "away")),
		os.Symlink(outside, filepath.Join(inside, "absolute")),
	)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Nothing but a regular file is read, whatever leads to it, and a named pipe does not hold up its reader.
func TestRead(t *testing.T) {
	dir := filepath.Join(place(t), "own")
	for name, want := range map[string]error{
		"file": nil, "link": nil, "away": nil, "pipe": files.ErrIrregular, "tree": files.ErrIrregular, "large": files.ErrTooLarge, "missing": fs.ErrNotExist,
	} {
		if _, err := files.Read(filepath.Join(dir, name), 100); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	for _, device := range []string{"/dev/zero", "/dev/tty", "/dev/stdin"} {
		if _, err := files.Read(device, 100); err == nil {
			t.Errorf("%s is read", device)
		}
	}
	if data, err := files.Read("/proc/self/status", 1<<20); err != nil || len(data) == 0 {
		t.Errorf("a file without a size: %d bytes, %v", len(data), err)
	}
}

// A confined path leads to what is really in its directory.
func TestConfinedPath(t *testing.T) {
	dir := place(t)
	for name, want := range map[string]error{
		"file": nil, "./link": nil, "tree/../file": nil, "pipe": files.ErrIrregular, "large": files.ErrTooLarge, "missing": fs.ErrNotExist,
		"../secret": files.ErrEscapes, "away": files.ErrEscapes, "absolute": files.ErrEscapes, filepath.Join(dir, "own", "file"): files.ErrEscapes, "tree/../../secret": files.ErrEscapes,
	} {
		p := files.ConfinedPath(filepath.Join(dir, "own"), name)
		if _, err := p.Read(100); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		if escapes := errors.Is(p.Check(), files.ErrEscapes); escapes != errors.Is(want, files.ErrEscapes) {
			t.Errorf("%s: the check says %v", name, p.Check())
		}
	}
}

// A decoded path cannot be opened before its base directory is set. A denied one cannot be opened at all.
func TestUnplacedPath(t *testing.T) {
	dir := place(t)
	for _, change := range []func(*files.Path){func(*files.Path) {}, (*files.Path).Deny} {
		var p files.Path
		if err := p.UnmarshalText([]byte(filepath.Join(dir, "own", "file"))); err != nil {
			t.Fatal(err)
		}
		change(&p)
		_, err := p.Read(100)
		_, treeErr := p.Tree(func(string) bool { return true }, 100)
		if err == nil || treeErr == nil || (files.Target{Path: p}).Replace(nil) == nil {
			t.Errorf("%s is opened", p)
		}
	}
}

func TestTree(t *testing.T) {
	dir := filepath.Join(place(t), "own")
	rego := func(base string) bool { return strings.HasSuffix(base, ".rego") }
	got, err := files.ConfinedPath(dir, "tree").Tree(rego, 100)
	if err != nil || len(got) != 1 || string(got["a.rego"]) != "a" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := files.ConfinedPath(dir, ".").Tree(func(string) bool { return true }, 10); err == nil {
		t.Error("a tree with a pipe and more bytes than allowed is read")
	}
	for _, name := range []string{"pipe", "file", "missing"} {
		if _, err := files.UnrestrictedPath(filepath.Join(dir, name)).Tree(rego, 100); err == nil || errors.Is(err, files.ErrTooSlow) {
			t.Errorf("%s is read as a directory: %v", name, err)
		}
		if _, err := files.ConfinedPath(dir, name).Tree(rego, 100); err == nil || errors.Is(err, files.ErrTooSlow) {
			t.Errorf("%s is read as a directory: %v", name, err)
		}
	}
}

// A file is replaced whole, and only where it is confined to.
func TestReplace(t *testing.T) {
	dir := place(t)
	own := filepath.Join(dir, "own")
	target := func(name string) files.Target {
		p := files.ConfinedPath(own, name)
		p.Confine(own, filepath.Join(own, "tree"))
		return files.Target{Path: p}
	}
	good := target("tree/kept")
	for _, text := range []string{"one", "two"} {
		if err := errors.Join(good.Check(), good.Replace([]byte(text))); err != nil {
			t.Fatal(err)
		}
		if data, err := good.Read(100); err != nil || string(data) != text {
			t.Errorf("%q, %v", data, err)
		}
	}
	for _, name := range []string{"file", "../secret", "tree/../file", "away", "tree/missing/x", filepath.Join(own, "file")} {
		if target(name).Check() == nil {
			t.Errorf("the check passes %s", name)
		}
		if target(name).Replace(nil) == nil {
			t.Errorf("%s is replaced", name)
		}
	}
	entries, err := os.ReadDir(filepath.Join(own, "tree"))
	if err != nil || len(entries) != 3 {
		t.Errorf("%v is left behind, %v", entries, err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "secret")); err != nil || string(data) != "secret" {
		t.Errorf("%q, %v", data, err)
	}
}
