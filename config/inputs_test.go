package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/config/files"
)

// A file is read again only when it has changed: another size, time or file. One
// that was written a moment ago may have changed without that.
func TestLookReadsWhatChanged(t *testing.T) {
	t.Parallel()
	path, old := filepath.Join(t.TempDir(), "f"), time.Now().Add(-time.Hour)
	write := func(text string, at time.Time) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	write("one", old)
	var in Inputs
	if _, err := in.read(files.UnrestrictedPath(path), func() ([]byte, error) { return files.Read(path, 100) }, &allowance{100, readTime}); err != nil {
		t.Fatal(err)
	}
	first := in.current()
	write("two", old)
	if !first.current().equal(in) {
		t.Error("a file with the size, time and identity that it had is read again")
	}
	if !in.current().equal(in) {
		t.Error("a file that was read when it was loaded is read again by the first look")
	}
	write("two", old.Add(time.Minute))
	second := first.current()
	if second.equal(in) {
		t.Error("another time is not seen")
	}
	next := path + ".next"
	if err := os.WriteFile(next, []byte("six"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(next, old, old); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
	if first.current().equal(in) {
		t.Error("another file of the same size and time is not seen")
	}
	write("now", time.Now())
	recent := in.current()
	write("not", time.Now())
	if recent.current().equal(recent) {
		t.Error("a file that was written a moment ago is taken for read")
	}
}
