package main

import (
	"os"
	"testing"
)

// TestRowsFitTheCode tells which rows no longer name a place of the code before
// `make mutants` runs into them.
func TestRowsFitTheCode(t *testing.T) {
	t.Chdir("../..")
	for _, m := range mutants() {
		if _, err := m.changed(); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		if _, err := os.Stat(m.pkg); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}
