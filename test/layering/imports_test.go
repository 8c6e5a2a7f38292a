package layering_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/test/layering"
)

const module = "github.com/tollgate-dev/tollgate"

// pkg is one package of ours as go list tells it, paths below the module.
type pkg struct {
	ImportPath, Dir                    string
	GoFiles, IgnoredGoFiles            []string
	TestGoFiles, XTestGoFiles          []string
	Imports, TestImports, XTestImports []string
}

// list returns all packages.
func list(t *testing.T) []pkg {
	t.Helper()
	all, err := packages()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("go list found %d packages only", len(all))
	}
	return all
}

// packages asks go list, once for all tests: it takes seconds.
var packages = sync.OnceValues(func() ([]pkg, error) {
	cmd := exec.CommandContext(context.Background(), "go", "list", "-json", "./...")
	cmd.Dir = "../.."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.String())
	}
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the output of go list: %w", err)
		}
		p.ImportPath = strings.TrimPrefix(p.ImportPath, module+"/")
		p.Imports, p.TestImports, p.XTestImports = ours(p.Imports), ours(p.TestImports), ours(p.XTestImports)
		all = append(all, p)
	}
})

func ours(imports []string) []string {
	var own []string
	for _, path := range imports {
		if below, ok := strings.CutPrefix(path, module+"/"); ok {
			own = append(own, below)
		}
	}
	return own
}

func TestPackagesImportWhatTheyMay(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		row, ok := layering.RowOf(p.ImportPath)
		if !ok {
			t.Errorf("%s has no row in test/layering/table.go: say what it may import, and why", p.ImportPath)
			continue
		}
		for _, path := range p.Imports {
			if !row.Allows(path) {
				t.Errorf("%s imports %s: %s", p.ImportPath, path, row.Why)
			}
		}
		may := slices.Concat(row.Tests, layering.TestMay())
		for _, path := range slices.Concat(p.TestImports, p.XTestImports) {
			if !row.Allows(path) && !slices.ContainsFunc(may, func(m string) bool { return layering.Matches(m, path) }) {
				t.Errorf("the tests of %s import %s: %s", p.ImportPath, path, row.Why)
			}
		}
	}
}

// The emulator is for tests, and in the program for two subcommands.
func TestEmulatorIsImportedByTheCommandAndTestsOnly(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		if strings.HasPrefix(p.ImportPath, "test/") || p.ImportPath == "cmd/tollgate" {
			continue
		}
		if i := slices.IndexFunc(p.Imports, func(path string) bool { return strings.HasPrefix(path, "test/") }); i >= 0 {
			t.Errorf("%s imports %s outside of its tests", p.ImportPath, p.Imports[i])
		}
	}
}

// The table itself: rows in which nothing can match, or that say nothing, are mistakes.
func TestTableIsSound(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	all := list(t)
	exists := func(pattern string) bool {
		return slices.ContainsFunc(all, func(p pkg) bool { return layering.Matches(pattern, p.ImportPath) })
	}
	for _, row := range layering.Table() {
		for _, pattern := range slices.Concat([]string{row.Package}, row.May, row.Tests) {
			if !exists(pattern) {
				t.Errorf("the row of %s names %s, and there is no such package", row.Package, pattern)
			}
		}
		if seen[row.Package] {
			t.Errorf("%s has two rows", row.Package)
		}
		seen[row.Package] = true
		if row.Why == "" {
			t.Errorf("%s does not say why", row.Package)
		}
		if root := strings.TrimSuffix(row.Package, "/..."); !row.Allows(root) {
			t.Errorf("%s does not allow itself", row.Package)
		}
	}
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"policies/ledger", "policies", true},
		{"policies", "gateway/route", false},
		{"policies", "policiesandmore", false},
		{"gateway/filter", "gateway/reverseproxy", false},
		{"gateway/reverseproxy", "gateway/filter", true},
		{"config", "config/strictyaml", true},
		{"config/strictyaml", "config", false},
		{"gateway", "config", false},
		{"test/platform/internal/x", "gateway/schema", false},
		{"test/parity", "gateway/filter", true},
		{"test/parity", "test/world", true},
		{"test/contract", "test/world", false},
		{"test/platform", "test/world", false},
		{"test/world", "test/platform", false},
		{"cmd/tollgate", "test/platform", true},
		{"cmd/tollgate", "test/envoytest", false},
	} {
		row, ok := layering.RowOf(c.from)
		if got := ok && row.Allows(c.to); got != c.want {
			t.Errorf("%s may import %s: %t, want %t", c.from, c.to, got, c.want)
		}
	}
	if row, ok := layering.RowOf("elsewhere"); ok {
		t.Errorf("a package outside of the layout got the row of %s", row.Package)
	}
}
