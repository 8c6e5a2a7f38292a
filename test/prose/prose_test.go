package prose_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/prose"
)

// bar bounds the figures of a page.
type bar struct {
	headless float64 // at most
	median   int     // at most
	long     int     // at most
}

// aim is the bar of every page.
var aim = bar{headless: 1, median: 16} //nolint:gochecknoglobals // a constant

// met reports whether figures are within a bar.
func (b bar) met(f prose.Figures) bool {
	return f.Headless <= b.headless && f.Median <= b.median && f.Long <= b.long
}

// pages returns the pages by hand: those of policies are made from their metadata, and decisions are a diary.
func pages(t *testing.T) map[string]string {
	t.Helper()
	const root = "../../"
	all := map[string]string{}
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/tasks/*.md"} {
		files, err := filepath.Glob(root + pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d pages, %v", pattern, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all[strings.TrimPrefix(filepath.ToSlash(file), root)] = string(text)
		}
	}
	return all
}

// Pages are in plain English, by figures.
func TestPages(t *testing.T) {
	t.Parallel()
	all := pages(t)
	for _, page := range slices.Sorted(maps.Keys(all)) {
		f := prose.Measure(all[page])
		t.Logf("%-30s %5d words, headless %5.2f, median %2d, long %2d", page, f.Words, f.Headless, f.Median, f.Long)
		if !aim.met(f) {
			t.Errorf("%s: %+v, and the aim is %+v: write plainer sentences", page, f, aim)
		}
	}
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	const page = "# What runs here\n\nYou start it. What runs is counted, and callers who have a key pass.\n\n" +
		"- Whoever wants more says so.\n- What is it?\n\n```sh\nwhat is not counted\n```\n\n<!-- what is not -->\n| what is | in a row, of a table |\n"
	f := prose.Measure(page)
	got := []float64{f.Headless * float64(f.Words) / 1000, float64(f.Median), float64(f.Long)}
	if want := []float64{4, 11, 0}; !slices.EqualFunc(got, want, func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }) {
		t.Errorf("headless, median, long = %v, want %v", got, want)
	}
	if f := prose.Measure(strings.Repeat("word ", prose.Longest) + "end. Short enough for it."); f.Long != 1 {
		t.Errorf("long = %d, want 1", f.Long)
	}
}
