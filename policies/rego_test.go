package policies_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/format"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"

	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
	"github.com/tollgate-dev/tollgate/policies/regosandbox"
)

var update = flag.Bool("update", false, "rewrite generated and formatted files")

// regoSources reads every Rego file of the library, tests included.
func regoSources(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(os.DirFS("."), "rego", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".rego") {
			return err
		}
		text, err := os.ReadFile(name)
		out[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRegoIsFormatted(t *testing.T) {
	for name, text := range regoSources(t) {
		want, err := format.SourceWithOpts(name, []byte(text), format.Opts{RegoVersion: ast.RegoV1})
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(name, want, 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if diff := cmp.Diff(string(want), text); diff != "" {
			t.Errorf("%s is not formatted, run go test -update (-want +got):\n%s", name, diff)
		}
	}
}

// TestRego runs the library's own tests as opa test would, strictly compiled,
// and holds their coverage to a threshold.
func TestRego(t *testing.T) {
	const threshold = 95.0
	sources := regoSources(t)
	modules := map[string]*ast.Module{}
	for name, text := range sources {
		m, err := ast.ParseModuleWithOpts(name, text, ast.ParserOptions{RegoVersion: ast.RegoV1, ProcessAnnotation: true})
		if err != nil {
			t.Fatal(err)
		}
		modules[name] = m
	}
	compiler := func() *ast.Compiler {
		var schema any
		if err := json.Unmarshal(policyinput.Schema(), &schema); err != nil {
			t.Fatal(err)
		}
		schemas := ast.NewSchemaSet()
		schemas.Put(ast.SchemaRootRef, schema)
		return ast.NewCompiler().WithSchemas(schemas).WithCapabilities(regosandbox.Capabilities()).WithStrict(true).WithDefaultRegoVersion(ast.RegoV1)
	}
	tracer := cover.New()
	results, err := tester.NewRunner().SetCompiler(compiler()).SetStore(inmem.New()).
		CapturePrintOutput(true).SetCoverageQueryTracer(tracer).SetModules(modules).
		RaiseBuiltinErrors(true).RunTests(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for r := range results {
		ran++
		if !r.Pass() {
			t.Errorf("%s: %s failed: %v\n%s", r.Location, r.Name, r.Error, r.Output)
		}
	}
	if ran == 0 {
		t.Fatal("no test ran")
	}
	report := tracer.Report(modules)
	var covered, missed int
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for f := range report.Files {
			if !yield(f) {
				return
			}
		}
	}) {
		file := report.Files[name]
		if strings.HasSuffix(name, "_test.rego") {
			continue
		}
		covered += file.CoveredLines
		missed += file.NotCoveredLines
		if file.Coverage < threshold {
			t.Errorf("%s: %.1f %% covered, not: %v", name, file.Coverage, rows(file.NotCovered))
		}
	}
	total := 100 * float64(covered) / float64(covered+missed)
	t.Logf("%d tests, %.1f %% of %d lines covered", ran, total, covered+missed)
	if total < threshold {
		t.Errorf("coverage: got %.1f %%, want at least %.1f %%", total, threshold)
	}
}

func rows(ranges []cover.Range) string {
	var out []string
	for _, r := range ranges {
		out = append(out, fmt.Sprintf("%d-%d", r.Start.Row, r.End.Row))
	}
	return strings.Join(out, " ")
}

// TestEveryPolicyHasAllowAndDeny holds each policy to at least one test of
// either outcome, named so.
func TestEveryPolicyHasAllowAndDeny(t *testing.T) {
	lib := compiler.Library()
	sources := regoSources(t)
	for _, p := range lib {
		text := sources["rego/"+p.Name+"_test.rego"]
		for _, want := range []string{"\ntest_allow", "\ntest_" + verdictWord(p.Mutates, text)} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no rule named %s...", p.Name, strings.TrimSpace(want))
			}
		}
	}
}

// verdictWord: a policy that only changes bodies has a change to show instead
// of a denial.
func verdictWord(mutates bool, text string) string {
	if mutates && !strings.Contains(text, "\ntest_deny") {
		return "change"
	}
	return "deny"
}

// TestNegationsOfOptionalInput looks for a trap of Rego: in `not f(input.x)`
// the reference is looked up outside the negation, so that a missing x ends
// the rule, and a missing field would pass where it was meant to be refused.
func TestNegationsOfOptionalInput(t *testing.T) {
	for name, text := range regoSources(t) {
		m, err := ast.ParseModuleWithOpts(name, text, ast.ParserOptions{RegoVersion: ast.RegoV1})
		if err != nil {
			t.Fatal(err)
		}
		ast.WalkExprs(m, func(e *ast.Expr) bool {
			if !e.Negated || !e.IsCall() {
				return false
			}
			for _, operand := range e.Operands() {
				ast.WalkRefs(operand, func(r ast.Ref) bool {
					if optional(r) {
						t.Errorf("%s: not %s: bind it first, with a rule for when it is missing", e.Location, r)
					}
					return false
				})
			}
			return false
		})
	}
}

// optional reports whether an input path may be missing.
func optional(r ast.Ref) bool {
	path := r.String()
	if !strings.HasPrefix(path, "input") {
		return false
	}
	always := []string{
		"input.request.verb", "input.request.operation", "input.request.settles", "input.resource.kind",
		"input.caller.team", "input.caller.roles", "input.cost.", "input.spend.", "input.time.",
	}
	return !slices.ContainsFunc(always, func(p string) bool { return strings.HasPrefix(path, p) })
}
