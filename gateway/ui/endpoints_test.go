package ui_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway"
)

// Each endpoint that pages and templates name exists: a page that asks whether a principal may call another one panics.
func TestPatternsAreEndpoints(t *testing.T) {
	t.Parallel()
	known := make(map[string]bool)
	for _, r := range gateway.AdminRows() {
		known[r.Pattern] = true
	}
	pattern, found := regexp.MustCompile(`"((?:GET|POST) /admin/[^"]+)"`), 0
	for _, names := range []string{"*.go", "assets/*/*.html"} {
		files, err := filepath.Glob(names)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range pattern.FindAllStringSubmatch(string(text), -1) {
				found++
				if !known[match[1]] {
					t.Errorf("%s names %s, which is no endpoint", file, match[1])
				}
			}
		}
	}
	if found < 40 {
		t.Errorf("%d patterns: the search does not find them", found)
	}
}
