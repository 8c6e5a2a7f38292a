package layering_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThreats: docs/security.md has a row for each threat and fault, once, and all
// tests it names exist.
func TestThreats(t *testing.T) {
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{}
	named := regexp.MustCompile("`([a-z0-9/]+)\\.(Test[A-Za-z0-9_]+)`")
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		tests := named.FindAllStringSubmatch(line, -1)
		for _, test := range tests {
			if !declares(t, test[1], test[2]) {
				t.Errorf("%s: no test %s in %s", line, test[2], test[1])
			}
		}
		if len(cells) != 6 || !regexp.MustCompile(`^ [TRA]\d`).MatchString(cells[1]) {
			continue
		}
		for id := range strings.SplitSeq(cells[1], ",") {
			rows[strings.TrimSpace(id)]++
		}
		if len(tests) == 0 && !strings.HasPrefix(cells[4], " none: ") {
			t.Errorf("%s: names neither a test nor why there is none", cells[1])
		}
	}
	for prefix, last := range map[string]int{"T": 133, "A": 13, "R": 38} {
		for n := 1; n <= last; n++ {
			if id := fmt.Sprintf("%s%02d", prefix, n); rows[id] != 1 {
				t.Errorf("%s: %d rows, want one", id, rows[id])
			}
		}
	}
}

// declares reports whether a package, given by its path below the module, has a test.
func declares(t *testing.T, pkg, test string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "func "+test+"(") {
			return true
		}
	}
	return false
}
