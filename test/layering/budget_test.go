package layering_test

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/layering"
)

// lines counts a package's lines of code outside of tests, for every operating system.
func lines(t *testing.T, p pkg) int {
	t.Helper()
	n := 0
	for _, name := range slices.Concat(p.GoFiles, p.IgnoredGoFiles) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		n += layering.CodeLines(text)
	}
	return n
}

func TestCodeLines(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int{
		"package p\n": 1,
		"// Package p is empty.\npackage p // here\n\n/* a\nb */\n":    1,
		"package p\n\nvar s = `a\n\n// b\n`\n":                         5,
		"package p\n\nvar s = \"" + strings.Repeat("x", 140) + "\"\n":  3,
		"package p\n\nvar s = 1 // " + strings.Repeat("x", 200) + "\n": 2,
		"package p\n\nfunc f() {\n\tif true {\n\t\treturn\n\t}\n}\n":   6,
	} {
		if got := layering.CodeLines([]byte(code)); got != want {
			t.Errorf("%q: %d lines, want %d", code, got, want)
		}
	}
}

// budgeted reports whether a package's size is held: the product's and the emulator's are.
func budgeted(pkg string) bool {
	return !strings.HasPrefix(pkg, "test/") || layering.Matches("test/platform/...", pkg)
}

func TestPartsKeepToTheirBudgets(t *testing.T) {
	t.Parallel()
	stands := map[string]int{}
	for _, p := range list(t) {
		b, ok := layering.BudgetOf(p.ImportPath)
		switch {
		case ok:
			stands[b.Of] += lines(t, p)
		case budgeted(p.ImportPath):
			t.Errorf("%s belongs to no row of test/layering/budget.go: name it in the row of its part, or give it one with %d lines", p.ImportPath, lines(t, p))
		}
	}
	for _, b := range layering.Budgets() {
		if complaint := layering.Hold(b, stands[b.Of]); complaint != "" {
			t.Errorf("%s (%s): %s", b.Of, strings.Join(b.Packages, ", "), complaint)
		}
	}
}

// The judge of sizes itself, and the table: a part has one row, and its patterns name packages that exist.
func TestBudgetsAreSound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stands int
		want   string
	}{
		{1000, ""},
		{1001, "1001 lines, at most 1000"},
		{999, "lower the figure to 999"},
		{0, "lower the figure to 0"},
	} {
		got := layering.Hold(layering.Budget{Lines: 1000}, c.stands)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%d lines of 1000: %q, want %q", c.stands, got, c.want)
		}
	}
	all := list(t)
	seen := map[string]bool{}
	for _, b := range layering.Budgets() {
		for _, name := range slices.Concat([]string{b.Of}, b.Packages) {
			if seen[name] {
				t.Errorf("%s stands twice", name)
			}
			seen[name] = true
		}
		for _, pattern := range b.Packages {
			if !slices.ContainsFunc(all, func(p pkg) bool { return layering.Matches(pattern, p.ImportPath) }) {
				t.Errorf("the row of %s names %s, and there is no such package: delete the name", b.Of, pattern)
			}
		}
	}
	for pkg, want := range map[string]bool{"cmd/tollgate": true, "cmd/tollgate/x": false, "gateway/x": false, "test/platform/x": true, "test/x": false} {
		if _, ok := layering.BudgetOf(pkg); ok != want {
			t.Errorf("%s belongs to a row: %t, want %t", pkg, ok, want)
		}
	}
}

// Settings are for users and say who, what and how much. How the gateway does it is a constant.
func TestSettingsKeepToTheirNumber(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(.*?)`(?:<br>.*?)? \\|").FindAllStringSubmatch(string(page), -1) {
		names := strings.Split(row[1], "`, `") // a row can name several settings of a section
		section := names[0][:strings.LastIndexByte(names[0], '.')+1]
		paths = append(paths, names[0])
		for _, name := range names[1:] {
			paths = append(paths, section+name)
		}
	}
	n := 0
	for _, path := range paths {
		if !slices.ContainsFunc(paths, func(other string) bool {
			below, ok := strings.CutPrefix(other, path)
			return ok && below != "" && strings.ContainsAny(below[:1], ".[<")
		}) {
			n++
		}
	}
	exact(t, "settings in docs/configuration.md", n, "MaxSettings", layering.MaxSettings)
}

// A note of one stage to another belongs to a part of the exchange, not to the exchange.
func TestExchangeKeepsToItsFields(t *testing.T) {
	t.Parallel()
	n := 0
	for _, f := range parse(t, "../../gateway/filter", []string{"exchange.go"}) {
		ast.Inspect(f, func(node ast.Node) bool {
			spec, ok := node.(*ast.TypeSpec)
			if !ok || spec.Name.Name != "Exchange" {
				return true
			}
			for _, field := range spec.Type.(*ast.StructType).Fields.List {
				n += max(1, len(field.Names)) // an embedded field has no name
			}
			return false
		})
	}
	exact(t, "fields of filter.Exchange", n, "MaxExchangeFields", layering.MaxExchangeFields)
}

// exact holds a count that may only fall against its constant, which falls with it.
func exact(t *testing.T, what string, n int, name string, most int) {
	t.Helper()
	switch {
	case n > most:
		t.Errorf("%d %s, at most %d: do without, or raise %s in test/layering/budget.go and say why in the commit", n, what, most, name)
	case n < most:
		t.Errorf("%d %s, fewer than the %d before: lower %s in test/layering/budget.go to %d", n, what, most, name, n)
	}
}

func TestPackagesStayWithinReach(t *testing.T) {
	t.Parallel()
	large, wide := layering.Large(), layering.Wide()
	for _, p := range list(t) {
		if !budgeted(p.ImportPath) {
			continue
		}
		switch n, listed := lines(t, p), slices.Contains(large, p.ImportPath); {
		case n > layering.LargeLines && !listed:
			t.Errorf("%s has %d lines: split it below %d", p.ImportPath, n, layering.LargeLines)
		case n <= layering.LargeLines && listed:
			t.Errorf("%s has %d lines: delete it from Large in test/layering/budget.go", p.ImportPath, n)
		}
		most := max(wide[p.ImportPath], layering.WideImports)
		switch n := len(p.Imports); {
		case n > most:
			t.Errorf("%s imports %d packages of ours, at most %d: move what needs them into a package of its own", p.ImportPath, n, most)
		case n < wide[p.ImportPath]:
			t.Errorf("%s imports %d packages of ours, fewer than before: lower its figure in Wide in test/layering/budget.go, or delete it at %d and below",
				p.ImportPath, n, layering.WideImports)
		}
	}
}
