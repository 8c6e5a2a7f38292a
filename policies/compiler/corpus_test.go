package compiler_test

import (
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/test/cases"
	"github.com/open-policy-agent/opa/v1/test/cases/testdata"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/util"

	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/regosandbox"
)

// allowed are the built-in functions that policies may call.
var allowed = sync.OnceValue(func() []*ast.Builtin { return regosandbox.Capabilities().Builtins })

// function is one of them.
func function(name string) topdown.BuiltinFunc {
	if slices.ContainsFunc(allowed(), func(b *ast.Builtin) bool { return b.Name == name }) {
		return topdown.GetBuiltin(name)
	}
	return nil
}

// corpus are the cases of OPA, for whatever evaluates Rego.
func corpus(t *testing.T) []cases.TestCase {
	t.Helper()
	var out []cases.TestCase
	err := fs.WalkDir(testdata.V1, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := testdata.V1.ReadFile(name)
		if err != nil {
			return err
		}
		var set cases.Set
		if err := util.Unmarshal(text, &set); err != nil {
			return err
		}
		out = append(out, set.Cases...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestCorpus: of every rule that OPA's cases ask for, a run says the same as the
// evaluation, or that it cannot tell. It can tell of most.
func TestCorpus(t *testing.T) {
	sure, unsure := 0, 0
	for _, c := range corpus(t) {
		rule, _, _ := strings.Cut(c.Query, "=")
		rule = strings.TrimSpace(rule)
		compiled, input := prepared(t, &c, rule)
		if compiled == nil {
			continue
		}
		program, err := compiler.CompileProgram(t.Context(), compiled, []string{rule}, "", function)
		if err != nil {
			unsure++
			continue
		}
		run := program.Begin(input, nil)
		r := program.Rule(strings.TrimPrefix(rule, "data."))
		if r == nil {
			run.End()
			continue
		}
		got, ok := run.Value(r)
		want, err := evaluated(t, &c, compiled, rule, input)
		switch {
		case !ok:
			unsure++
		case err != nil:
			t.Errorf("%s: got %v, want the error %v", c.Note, got, err)
		case (got == nil) != (want == nil) || got != nil && !got.Equal(want):
			t.Errorf("%s: got %v, want %v", c.Note, got, want)
		default:
			sure++
		}
		run.End()
	}
	t.Logf("%d told, %d left to the evaluation", sure, unsure)
	if sure < 600 || sure < unsure {
		t.Errorf("%d told and %d left to the evaluation, too few", sure, unsure)
	}
}

// prepared compiles the modules of a case; nil if it does not ask for a rule, or not
// for one that compiles.
func prepared(t *testing.T, c *cases.TestCase, rule string) (*ast.Compiler, *ast.Term) {
	t.Helper()
	ref, err := ast.ParseRef(rule)
	if err != nil || !ref.IsGround() || !ref.HasPrefix(ast.DefaultRootRef) || c.ExperimentalKeywords || len(c.Env) > 0 {
		return nil, nil
	}
	compiler, modules := ast.NewCompiler(), map[string]*ast.Module{}
	for _, text := range c.Modules {
		m, err := ast.ParseModuleWithOpts(text, text, ast.ParserOptions{RegoVersion: ast.RegoV1})
		if err != nil {
			return nil, nil
		}
		modules[text] = m
	}
	if compiler.Compile(modules); compiler.Failed() || len(compiler.GetRulesExact(ref)) == 0 {
		return nil, nil
	}
	switch {
	case c.InputTerm != nil:
		input, err := ast.ParseTerm(*c.InputTerm)
		if err != nil || !input.IsGround() {
			return nil, nil
		}
		return compiler, input
	case c.Input != nil:
		return compiler, ast.NewTerm(ast.MustInterfaceToValue(*c.Input))
	}
	return compiler, nil
}

// evaluated is the value of a rule of a case, nil if it is undefined.
func evaluated(t *testing.T, c *cases.TestCase, compiler *ast.Compiler, rule string, input *ast.Term) (*ast.Term, error) {
	t.Helper()
	data := map[string]any{}
	if c.Data != nil {
		data = *c.Data
	}
	store := inmem.NewFromObject(data)
	txn, err := store.NewTransaction(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Abort(t.Context(), txn)
	var out *ast.Term
	query := topdown.NewQuery(ast.MustParseBody("x = " + rule)).WithCompiler(compiler).WithStore(store).WithTransaction(txn).
		WithStrictBuiltinErrors(true)
	if input != nil {
		query = query.WithInput(input)
	}
	err = query.Iter(t.Context(), func(r topdown.QueryResult) error {
		out = r["x"]
		return nil
	})
	return out, err
}
