package v1

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The page operators read lists every field that is lost.
func TestThePageIsComplete(t *testing.T) {
	data, err := os.ReadFile("../../docs/v1.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	_, lost, _ := strings.Cut(page, "## What is lost")
	for _, row := range operations() {
		for _, f := range row.form {
			handling := trials[row.ID][f.name].handling
			if (handling == warned || handling == refused) && !strings.Contains(lost, "`"+f.name+"`") {
				t.Errorf("docs/v1.md does not say what becomes of %s of %s", f.name, row.ID)
			}
		}
	}
	operation := regexp.MustCompile("`([a-z]+[A-Z][A-Za-z]+)`")
	_, table, _ := strings.Cut(page, "## Operations and their v2 calls")
	table, _, _ = strings.Cut(table, "## ")
	named := map[string]bool{}
	for _, m := range operation.FindAllStringSubmatch(table, -1) {
		named[m[1]] = true
	}
	for _, row := range operations() {
		if row.V2 != "" && !row.Public && !named[row.V2] {
			t.Errorf("docs/v1.md does not say that %s becomes %s", row.ID, row.V2)
		}
	}
}
