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

// Options configures a test run.
type Options struct {
	// Run selects tests by name (package and rule); nil selects all.
	Run *regexp.Regexp
	// Timeout limits each test. Default: 5s.
	Timeout time.Duration
}

// Run runs the tests in dir. It returns an error that joins all faults found when reading and compiling the files. Failing tests do not
// cause an error.
func Run(ctx context.Context, dir string, opts Options) (*Report, error) {
	w, err := compiler.ReadWorkspace(dir)
	if err != nil {
		return nil, err
	}
	// Compile first: its errors are more precise than the runner's errors.
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

// run runs the workspace's own tests that filter selects and returns them sorted by position.
func run(ctx context.Context, w *compiler.Workspace, opts Options, filter string, with func(*tester.Runner)) ([]*tester.Result, error) {
	r := tester.NewRunner().SetCompiler(w.Compiler().WithEnablePrintStatements(true)).SetModules(w.Modules()).SetStore(w.Store()).
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

// blame runs the failed tests again with tracing, which cannot be combined with coverage, to find the expression that failed.
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

// failedAt returns the expression in the test's own body that was evaluated last and failed.
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
	_ = topdown.PrettyEvent(&values, at, topdown.PrettyEventOpts{PrettyVars: true}) // strings.Builder never returns an error
	return &Failed{Place: placeOf(found.Loc()), Text: strings.TrimSpace(string(found.Loc().Text)), Values: flush(values.String())}
}

// flush removes the source's indentation from the lines of text.
func flush(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(strings.TrimLeft(lines[i], "\t"), " ")
	}
	return strings.Join(lines, "\n")
}

// covered returns the coverage of the workspace's policies.
func covered(w *compiler.Workspace, tracer *cover.Cover) []File {
	modules := w.Modules()
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

// add adds missed lines and merges adjacent ranges.
func (f *File) add(l Lines) {
	if n := len(f.NotCovered); n > 0 && f.NotCovered[n-1].Last >= l.First-1 {
		f.NotCovered[n-1].Last = max(f.NotCovered[n-1].Last, l.Last)
		return
	}
	f.NotCovered = append(f.NotCovered, l)
}
