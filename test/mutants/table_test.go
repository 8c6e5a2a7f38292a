package main

import (
	"os"
	"path"
	"testing"
)

// TestRowsFitTheCode tells which rows no longer name a place of the code before
// `make mutants` runs into them. The tests of a row are those of the changed package, so that
// its faults are noticed where they are made.
func TestRowsFitTheCode(t *testing.T) {
	t.Chdir("../..")
	for _, m := range mutants() {
		if _, err := m.changed(); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		if _, err := os.Stat(m.pkg); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		if own := path.Dir(m.file); path.Clean(m.pkg) != own {
			t.Errorf("%s: runs the tests of %s, want those of %s", m.name, m.pkg, own)
		}
	}
}
