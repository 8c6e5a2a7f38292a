package layering_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestThreats: testdata/threats.txt lists the threats and faults of docs/security.md in the page's order, each with
// tests that exist or the reason for none.
func TestThreats(t *testing.T) {
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile("testdata/threats.txt")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \| [^|]+ \|$`).FindAllStringSubmatch(string(page), -1) {
		if !slices.Contains([]string{"threat", "fault", "---"}, row[1]) {
			want = append(want, row[1])
		}
	}
	if len(want) < 50 {
		t.Fatalf("docs/security.md has %d rows, want the many there are", len(want))
	}
	var got []string
	named := regexp.MustCompile(`^([a-z0-9/]+)\.(Test[A-Za-z0-9_]+)$`)
	for entry := range strings.SplitSeq(regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(string(list), ""), "\n") {
		tests, found := strings.CutPrefix(entry, "    ")
		switch {
		case entry == "":
		case !found:
			got = append(got, entry)
		case strings.HasPrefix(tests, "none: "):
		default:
			for name := range strings.FieldsSeq(tests) {
				if m := named.FindStringSubmatch(name); m == nil || !declares(t, m[1], m[2]) {
					t.Errorf("%s: no test %s", got[len(got)-1], name)
				}
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows of docs/security.md and of threats.txt (-page +list):\n%s", diff)
	}
	for _, row := range got {
		if !strings.Contains(string(list), "\n"+row+"\n    ") {
			t.Errorf("%s: names neither a test nor why there is none", row)
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
