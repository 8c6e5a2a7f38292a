package layering_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/test/layering"
)

var update = flag.Bool("update", false, "rewrite the layers in .golangci.yml")

const (
	linterFile = "../../.golangci.yml"
	begin      = "        # The layers."
	end        = "\n\n  exclusions:"
)

// The linter tells while typing the same as the other tests when run: the same table, as depguard's
// rules.
func TestLinterHoldsTheSameTable(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(linterFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), begin)
	comment, rest, ok2 := strings.Cut(rest, "\n")
	got, after, ok3 := strings.Cut(rest, end)
	if !ok || !ok2 || !ok3 {
		t.Fatalf("%s has no part between %q and %q", linterFile, begin, end)
	}
	want := depguard()
	if *update {
		text := before + begin + comment + "\n" + want + end + after
		if err := os.WriteFile(linterFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("depguard's rules are not the table's, -update rewrites them (-want +got):\n%s", diff)
	}
}

// depguard writes the table as rules of the linter. The packages that a row allows are more specific than the module, which is denied.
// Of two patterns where one covers the other, depguard would look at one only.
func depguard() string {
	var rules []string
	for _, row := range layering.Table() {
		if row.Package == "test/..." {
			continue // it may import everything
		}
		var b strings.Builder
		root, tree := strings.CutSuffix(row.Package, "/...")
		name := root
		if tree {
			name += "-tree" // a package and the tree below it may have a row each
		}
		fmt.Fprintf(&b, "        %s:\n          list-mode: lax\n          files:\n            - \"**/%s/*.go\"\n", name, root)
		if tree {
			fmt.Fprintf(&b, "            - \"**/%s/**/*.go\"\n", root)
		}
		b.WriteString("            - \"!$test\"\n")
		fmt.Fprintf(&b, "          deny:\n            - pkg: %s\n              desc: %q\n          allow:\n", module, row.Why)
		allow := slices.Concat([]string{row.Package}, row.May)
		for _, pattern := range allow {
			covers := func(other string) bool {
				return other != pattern && strings.HasSuffix(other, "/...") && layering.Matches(other, strings.TrimSuffix(pattern, "/..."))
			}
			if slices.ContainsFunc(allow, covers) {
				continue
			}
			below, tree := strings.CutSuffix(pattern, "/...")
			exact := "$"
			if tree {
				exact = ""
			}
			fmt.Fprintf(&b, "            - %s/%s%s\n", module, below, exact)
		}
		rules = append(rules, strings.TrimSuffix(b.String(), "\n"))
	}
	return strings.Join(rules, "\n")
}
