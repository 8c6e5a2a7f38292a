package authoring

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// Checked is the result of Check without its errors.
type Checked struct {
	// Policies are the organisation's own policies found in the directory.
	Policies []compiler.OwnPolicy
}

// Check checks the Rego and the data in dir. It returns an error that joins all faults it finds, each a *policyconfig.Error, sorted by
// position. Compile errors are only reported if every file can be parsed.
func Check(dir string) (*Checked, error) {
	w, err := compiler.ReadWorkspace(dir)
	faults := Faults(err)
	sources := w.Sources()
	for name, want := range unformatted(sources) {
		row, line := firstDifference(want, sources[name])
		faults = append(faults, &policyconfig.Error{
			File: name, Row: row, Col: 1, Message: fmt.Sprintf("rego_format: not formatted, want %q", line),
		})
	}
	report := &Checked{}
	if err == nil {
		faults = append(faults, Faults(w.Compile())...)
		_, err := policies.NewEngine(policyconfig.DefaultLimits(), map[string]policies.Config{"": {Directory: files.UnrestrictedPath(dir)}},
			policies.Deps{})
		faults = append(faults, Faults(err)...)
	}
	own, err := w.Policies()
	faults = append(faults, Faults(err)...)
	report.Policies = own
	return report, Join(faults)
}

// Faults splits a joined error. An error of another type is converted to a *policyconfig.Error without a position.
func Faults(err error) []*policyconfig.Error {
	var out []*policyconfig.Error
	for _, e := range policyconfig.Joined(err) {
		f, ok := errors.AsType[*policyconfig.Error](e)
		if !ok {
			f = &policyconfig.Error{Message: e.Error()}
		}
		out = append(out, f)
	}
	return out
}

// Join sorts faults by position, removes duplicates, and joins them. It returns nil for an empty list.
func Join(faults []*policyconfig.Error) error {
	faults = slices.SortedStableFunc(slices.Values(faults), func(a, b *policyconfig.Error) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Row, b.Row), cmp.Compare(a.Col, b.Col), cmp.Compare(a.Message, b.Message))
	})
	faults = slices.CompactFunc(faults, func(a, b *policyconfig.Error) bool {
		return a.File == b.File && a.Row == b.Row && a.Col == b.Col && a.Message == b.Message
	})
	out := make([]error, len(faults))
	for i, f := range faults {
		out[i] = f
	}
	return errors.Join(out...)
}

// unformatted returns the formatted text of the files that are not formatted and can be parsed.
func unformatted(sources map[string]string) map[string]string {
	out := map[string]string{}
	for name, text := range sources {
		if b, err := format.SourceWithOpts(name, []byte(text), format.Opts{RegoVersion: ast.RegoV1}); err == nil && string(b) != text {
			out[name] = string(b)
		}
	}
	return out
}

// firstDifference returns the number of the first line in which got differs from want, starting at 1, and the wanted line.
func firstDifference(want, got string) (row int, line string) {
	wants, gots := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i, line := range wants {
		if i >= len(gots) || gots[i] != line {
			return i + 1, line
		}
	}
	return len(wants), ""
}

// Format rewrites the files in dir that are not formatted, and returns their names. It skips files that cannot be parsed.
func Format(dir string) (changed []string, err error) {
	w, _ := compiler.ReadWorkspace(dir) // ReadDirectory reports files that cannot be parsed
	want := unformatted(w.Sources())
	for _, name := range slices.Sorted(maps.Keys(want)) {
		info, err := os.Stat(name)
		if err != nil {
			return changed, err
		}
		if err := os.WriteFile(name, []byte(want[name]), info.Mode().Perm()); err != nil {
			return changed, err
		}
		changed = append(changed, name)
	}
	return changed, nil
}
