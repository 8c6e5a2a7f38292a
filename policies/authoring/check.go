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
	"github.com/tollgate-dev/tollgate/policies/load"
	"github.com/tollgate-dev/tollgate/policies/section"
)

// Checked has the findings of a check that are not faults.
type Checked struct {
	// Policies are the organisation's own policies that were found.
	Policies []load.OwnPolicy
}

// Check checks the Rego and data below dir. Its error joins every fault,
// each a *section.Error, in the order of their places. Faults of compiling
// are found when all files can be parsed.
func Check(dir string) (*Checked, error) {
	w, err := load.ReadWorkspace(dir)
	faults := Faults(err)
	faults = append(faults, unformatted(w)...)
	report := &Checked{}
	if err == nil {
		faults = append(faults, Faults(w.Compile())...)
		_, err := policies.NewEngine(section.DefaultLimits(), map[string]policies.Config{"": {Directory: files.UnrestrictedPath(dir)}}, policies.Deps{})
		faults = append(faults, Faults(err)...)
	}
	own, err := w.Policies()
	faults = append(faults, Faults(err)...)
	report.Policies = own
	return report, Join(faults)
}

// Faults takes a joined error apart. An error of another type becomes a *section.Error
// without a place.
func Faults(err error) []*section.Error {
	if err == nil {
		return nil
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var out []*section.Error
		for _, e := range many.Unwrap() {
			out = append(out, Faults(e)...)
		}
		return out
	}
	if f, ok := errors.AsType[*section.Error](err); ok {
		return []*section.Error{f}
	}
	return []*section.Error{{Message: err.Error()}}
}

// Join sorts faults by place, leaves out those found twice, and joins them; nil
// for none.
func Join(faults []*section.Error) error {
	faults = slices.SortedStableFunc(slices.Values(faults), func(a, b *section.Error) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Row, b.Row), cmp.Compare(a.Col, b.Col), cmp.Compare(a.Message, b.Message))
	})
	faults = slices.CompactFunc(faults, func(a, b *section.Error) bool {
		return a.File == b.File && a.Row == b.Row && a.Col == b.Col && a.Message == b.Message
	})
	out := make([]error, len(faults))
	for i, f := range faults {
		out[i] = f
	}
	return errors.Join(out...)
}

// formatted is a file as it should be; ok is false when it does not parse.
func formatted(name, text string) (want string, ok bool) {
	b, err := format.SourceWithOpts(name, []byte(text), format.Opts{RegoVersion: ast.RegoV1})
	return string(b), err == nil
}

// unformatted reports files that are not formatted, at the first line that
// differs.
func unformatted(w *load.Workspace) []*section.Error {
	var out []*section.Error
	sources := w.Sources()
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		want, ok := formatted(name, sources[name])
		if !ok || want == sources[name] {
			continue
		}
		row, line := firstDifference(want, sources[name])
		out = append(out, &section.Error{
			File: name, Row: row, Col: 1, Message: fmt.Sprintf("rego_format: not formatted, want %q here", line),
		})
	}
	return out
}

// firstDifference is the first row, from 1, where got is not want, and the line
// wanted there.
func firstDifference(want, got string) (row int, line string) {
	wants, gots := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i, line := range wants {
		if i >= len(gots) || gots[i] != line {
			return i + 1, line
		}
	}
	return len(wants), ""
}

// Format rewrites the files below dir that are not formatted, and lists them. A
// file that does not parse is left alone.
func Format(dir string) (changed []string, err error) {
	w, _ := load.ReadWorkspace(dir) // what does not parse is told by Directory
	sources := w.Sources()
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		want, ok := formatted(name, sources[name])
		if !ok || want == sources[name] {
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return changed, err
		}
		if err := os.WriteFile(name, []byte(want), info.Mode().Perm()); err != nil {
			return changed, err
		}
		changed = append(changed, name)
	}
	return changed, nil
}
