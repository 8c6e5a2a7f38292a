package authoring_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/loader"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"

	"github.com/tollgate-dev/tollgate/policies/authoring"
)

// The export is enough for OPA's own compiler and test runner.
func TestExportServesOPA(t *testing.T) {
	dir := t.TempDir()
	for name, text := range authoring.Export() {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		writeTo(t, filepath.Join(dir, name), string(text))
	}
	own := filepath.Join(dir, "my")
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	writeTo(t, filepath.Join(own, "mine.rego"), "package policies.mine\n\nimport data.tollgate.gpu\n\ndeny contains \"x\" if some named in gpu.named\n")
	writeTo(t, filepath.Join(own, "mine_test.rego"), `package policies.mine_test

import data.policies.mine
import data.tollgate.testing

test_deny if count(mine.deny) == 1 with input as testing.create("pod", {"gpu": {"id": "NVIDIA L4"}})
`)
	compiler := func() *ast.Compiler {
		schemas, err := loader.Schemas(filepath.Join(dir, "input.schema.json"))
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "capabilities.json"))
		if err != nil {
			t.Fatal(err)
		}
		var c ast.Capabilities
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatal(err)
		}
		return ast.NewCompiler().WithStrict(true).WithSchemas(schemas).WithCapabilities(&c)
	}
	modules := func() map[string]*ast.Module {
		all, err := loader.NewFileLoader().WithRegoVersion(ast.RegoV1).All([]string{filepath.Join(dir, "library"), own})
		if err != nil {
			t.Fatal(err)
		}
		return all.ParsedModules()
	}
	c := compiler()
	if c.Compile(modules()); c.Failed() {
		t.Fatal(c.Errors)
	}
	results, err := tester.NewRunner().SetCompiler(compiler()).SetStore(inmem.New()).SetModules(modules()).RunTests(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var passed []string
	for r := range results {
		if r.Pass() {
			passed = append(passed, r.Name)
		} else {
			t.Errorf("%s: %+v", r.Name, r)
		}
	}
	if !slices.Equal(passed, []string{"test_deny"}) {
		t.Errorf("passed %v, want the own test alone", passed)
	}

	// A member that the input does not have is found.
	writeTo(t, filepath.Join(own, "mine.rego"), "package policies.mine\n\ndeny contains \"x\" if input.caller.teem\n")
	c = compiler()
	if c.Compile(modules()); !c.Failed() {
		t.Errorf("a member that the input does not have was not found in %v", slices.Sorted(maps.Keys(modules())))
	}
}
