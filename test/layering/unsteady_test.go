package layering

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// maxUnsteady bounds the tests that .ci/run may run a second time. Each of them is a suspected fault of the product.
const maxUnsteady = 4

// TestUnsteadyTestsExist holds .ci/unsteady to its form: a package, a test of that package, a date, an owner and a suspected cause.
func TestUnsteadyTestsExist(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile("../../.ci/unsteady")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(list)) {
		n++
		entry, cause, _ := strings.Cut(line, ": ")
		fields := strings.Fields(entry)
		if len(fields) != 4 || len(cause) < 20 {
			t.Errorf("want PACKAGE TEST DATE OWNER: CAUSE, got %q", line)
			continue
		}
		if _, err := time.Parse(time.DateOnly, fields[2]); err != nil {
			t.Error(err)
		}
		if !declares(t, fields[0], "func "+fields[1]+"(") {
			t.Errorf("%s has no test %s", fields[0], fields[1])
		}
	}
	if n > maxUnsteady {
		t.Errorf("%d tests are unsteady, at most %d: find the cause of one", n, maxUnsteady)
	}
}

// declares reports whether a test file of a package holds a text.
func declares(t *testing.T, pkg, text string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(source), text) {
			return true
		}
	}
	return false
}
