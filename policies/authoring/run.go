package authoring

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/tollgate-dev/tollgate/policies/compiler"
)

// Options narrow and bound a run.
type Options struct {
	// Run selects tests by name (package and rule); nil selects all.
	Run *regexp.Regexp
	// Timeout bounds each test. Default 5s.
	Timeout time.Duration
}

// Run runs the tests below dir. Its error joins all faults of reading and
// compiling; tests that fail are no error.
func Run(ctx context.Context, dir string, opts Options) (*Report, error) {
	w, err := compiler.ReadWorkspace(dir)
	if err != nil {
		return nil, err
	}
	// The runner says less about where a fault is.
	if err := w.Compile(); err != nil {
		return nil, err
	}
	filter := ""
	if opts.Run != nil {
		filter = opts.Run.String()
	}
	tracer := cover.New()
	results, err := run(ctx, w, opts, filter, func(r *tester.Runner) {
		r.SetCoverageRuns(nil).SetCoverageQueryTracer(tracer)
	})
	if err != nil {
		return nil, err
	}
	report := &Report{}
	failed := map[string]*tester.Result{}
	for _, r := range results {
		report.Results = append(report.Results, resultOf(r))
		if r.Fail {
			failed[name(r)] = r
		}
	}
	if len(failed) > 0 {
		if err := report.blame(ctx, w, opts, slices.Sorted(maps.Keys(failed))); err != nil {
			return nil, err
		}
	}
	report.Files = covered(w, tracer)
	return report, nil
}

// run runs the workspace's own tests that filter selects, by place.
func run(ctx context.Context, w *compiler.Workspace, opts Options, filter string, with func(*tester.Runner)) ([]*tester.Result, error) {
	modules, err := w.Modules()
	if err != nil {
		return nil, err
	}
	compiler, err := w.Compiler()
	if err != nil {
		return nil, err
	}
	r := tester.NewRunner().SetCompiler(compiler.WithEnablePrintStatements(true)).SetModules(modules).SetStore(w.Store()).
		CapturePrintOutput(true).RaiseBuiltinErrors(true).SetTimeout(cmp.Or(opts.Timeout, 5*time.Second)).Filter(filter)
	with(r)
	ch, err := r.RunTests(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("tests: %w", err)
	}
	var out []*tester.Result
	for result := range ch {
		if w.IsOwn(result.Location.File) {
			out = append(out, result)
		}
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b *tester.Result) int {
		return cmp.Or(cmp.Compare(a.Location.File, b.Location.File), cmp.Compare(a.Location.Row, b.Location.Row), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

func name(r *tester.Result) string { return strings.TrimPrefix(r.Package, "data.") + "." + r.Name }

func resultOf(r *tester.Result) Result {
	out := Result{Name: name(r), Place: placeOf(r.Location), Outcome: Pass, Took: r.Duration, Output: string(r.Output)}
	switch {
	case r.Skip:
		out.Outcome = Skip
	case r.Error != nil:
		out.Outcome, out.Message = Error, r.Error.Error()
	case r.Fail:
		out.Outcome = Fail
	}
	for path, sub := range r.SubResults.Iter {
		if sub.Fail && len(sub.SubResults) == 0 {
			out.Cases = append(out.Cases, strings.Join(path, "/"))
		}
	}
	return out
}

func placeOf(l *ast.Location) Place { return Place{File: l.File, Row: l.Row, Col: l.Col} }

// blame runs failed tests again with a trace, which coverage excludes, and
// finds the expression that did not hold.
func (r *Report) blame(ctx context.Context, w *compiler.Workspace, opts Options, names []string) error {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = regexp.QuoteMeta(n)
	}
	traced, err := run(ctx, w, opts, "^(data\\.)?("+strings.Join(quoted, "|")+")$", func(t *tester.Runner) { t.EnableTracing(true) })
	if err != nil {
		return err
	}
	for _, t := range traced {
		i := slices.IndexFunc(r.Results, func(have Result) bool { return have.Name == name(t) })
		if i >= 0 && r.Results[i].Outcome == Fail {
			r.Results[i].FailedAt = failedAt(t)
		}
	}
	return nil
}

// failedAt finds the expression of a test's own body that was reached last and
// did not hold.
func failedAt(r *tester.Result) *Failed {
	var queries []uint64 // evaluations of the test's rule
	var found *ast.Expr
	var at *topdown.Event
	for _, e := range r.Trace {
		switch node := e.Node.(type) {
		case *ast.Rule:
			if e.Op == topdown.EnterOp && node.Loc().Equal(r.Location) {
				queries = append(queries, e.QueryID)
			}
		case *ast.Expr:
			if e.Op != topdown.FailOp || !slices.Contains(queries, e.QueryID) || node.Loc() == nil {
				continue
			}
			if found == nil || node.Loc().Offset >= found.Loc().Offset {
				found, at = node, e
			}
		}
	}
	if found == nil {
		return nil
	}
	var values strings.Builder
	if topdown.PrettyEvent(&values, at, topdown.PrettyEventOpts{PrettyVars: true}) != nil {
		values.Reset() // a strings.Builder takes all
	}
	return &Failed{Place: placeOf(found.Loc()), Text: strings.TrimSpace(string(found.Loc().Text)), Values: flush(values.String())}
}

// flush removes the indentation of the source from the lines of a text.
func flush(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(strings.TrimLeft(lines[i], "\t"), " ")
	}
	return strings.Join(lines, "\n")
}

// covered reports the parts of the workspace's policies that tests reach.
func covered(w *compiler.Workspace, tracer *cover.Cover) []File {
	modules, err := w.Modules()
	if err != nil {
		return nil // Run has had them before
	}
	maps.DeleteFunc(modules, func(file string, _ *ast.Module) bool {
		return !w.IsOwn(file) || strings.HasSuffix(file, "_test.rego")
	})
	report := tracer.Report(modules)
	out := make([]File, 0, len(modules))
	for _, file := range slices.Sorted(maps.Keys(modules)) {
		f := report.Files[file]
		if f == nil {
			continue
		}
		covered := File{Name: file, Covered: f.CoveredLines, Missed: f.NotCoveredLines}
		for _, rng := range f.NotCovered {
			covered.add(Lines{First: rng.Start.Row, Last: rng.End.Row})
		}
		out = append(out, covered)
	}
	return out
}

// add notes missed lines; neighbours become one.
func (f *File) add(l Lines) {
	if n := len(f.NotCovered); n > 0 && f.NotCovered[n-1].Last >= l.First-1 {
		f.NotCovered[n-1].Last = max(f.NotCovered[n-1].Last, l.Last)
		return
	}
	f.NotCovered = append(f.NotCovered, l)
}
