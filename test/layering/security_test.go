package layering_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
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
			for _, id := range expand(t, strings.TrimSpace(id)) {
				rows[id]++
			}
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

// expand returns the row numbers of a range, such as T04-T07, or the single number that id is.
func expand(t *testing.T, id string) (all []string) {
	t.Helper()
	from, to, isRange := strings.Cut(id, "-")
	if !isRange {
		return []string{id}
	}
	first, err := strconv.Atoi(from[1:])
	last, errLast := strconv.Atoi(strings.TrimPrefix(to, from[:1]))
	if err != nil || errLast != nil || last <= first {
		t.Errorf("%s is no range of rows", id)
	}
	for n := first; n <= last; n++ {
		all = append(all, fmt.Sprintf("%s%02d", from[:1], n))
	}
	return all
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
