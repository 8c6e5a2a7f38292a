package compiler

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies/rego"
)

// Workspace is an organisation's Rego directory, with its tests, together with the library. It is meant for tools; an engine reads
// directories itself and excludes the tests.
type Workspace struct {
	mine OrgRego
}

// testingFile contains data.tollgate.testing, test inputs that organisations' tests may use.
const testingFile = libraryDir + "support/testing_test.rego"

// ReadWorkspace reads the Rego, including tests, and the data files in dir. If it finds faults, it returns an error that joins them, each a
// *policyconfig.Error, and a workspace with the files that could be read.
func ReadWorkspace(dir string) (*Workspace, error) {
	d, err := openDirectory("", files.UnrestrictedPath(dir), func(base string) bool {
		return isPolicyFile(base) || strings.HasSuffix(base, ".rego")
	})
	if err != nil {
		return &Workspace{mine: newOrgRego()}, err
	}
	mine, err := d.parse("")
	return &Workspace{mine: mine}, err
}

// Sources returns the Rego of the library, including its test inputs, by path.
func Sources() map[string]string {
	out := maps.Clone(loadLibrary().sources)
	text, _ := fs.ReadFile(rego.Files, strings.TrimPrefix(testingFile, libraryDir)) // an embedded file
	out[testingFile] = string(text)
	return out
}

// Sources returns the contents of the workspace's Rego files by path. The caller owns the map.
func (w *Workspace) Sources() map[string]string { return maps.Clone(w.mine.sources) }

// Modules returns the parsed files of the workspace and of the library, including its test inputs, by path. The caller owns the
// modules, which compilers modify.
func (w *Workspace) Modules() map[string]*ast.Module {
	testing, err := ast.ParseModuleWithOpts(testingFile, Sources()[testingFile], ast.ParserOptions{RegoVersion: ast.RegoV1})
	if err != nil {
		panic(err) // an embedded file
	}
	out := map[string]*ast.Module{testingFile: testing}
	for _, modules := range []map[string]*ast.Module{loadLibrary().modules(), w.mine.modules} {
		for file, m := range modules {
			out[file] = m.Copy()
		}
	}
	return out
}

// IsOwn reports whether a path returned by Modules belongs to the workspace and not to the library.
func (w *Workspace) IsOwn(file string) bool { return w.mine.modules[file] != nil }

// Compiler returns a compiler with the same configuration as the engine's compiler: strict, with the engine's capabilities, and with type
// checks against the input schema. It reports all errors.
func (w *Workspace) Compiler() *ast.Compiler { return newCompiler(loadLibrary(), w.mine.taken) }

// Store returns a new store with the workspace's data.
func (w *Workspace) Store() storage.Store { return newStore(w.mine.data) }

// Compile compiles everything, including tests, and finds policies in places where they would never be evaluated. It returns an error that
// joins all faults it finds, each a *policyconfig.Error.
func (w *Workspace) Compile() error {
	c, misplaced := w.Compiler(), w.mine.checkPlacement("")
	if c.Compile(w.Modules()); c.Failed() {
		return errors.Join(misplaced, located("", c.Errors, policyOfFile))
	}
	return errors.Join(misplaced, w.mine.checkConstants(""), w.mine.checkResultTypes("", c), w.mine.checkMembers("", w.Modules()))
}

// OwnPolicy is a package policies.<name> of an organisation.
type OwnPolicy struct {
	// Policy is the description in the package's METADATA. All fields except Name may be empty.
	Policy
	// Files lists the files of the package.
	Files []string
	// Rules lists its policy rules: deny, warn, mutate, violations, mutations.
	Rules []string
}

// Policies returns the organisation's own policies, sorted by name.
func (w *Workspace) Policies() ([]OwnPolicy, error) {
	found := map[string]*OwnPolicy{}
	var faults []error
	for _, file := range slices.Sorted(maps.Keys(w.mine.modules)) {
		m := w.mine.modules[file]
		name, ok := policyOfPackage(m)
		if !ok || strings.HasSuffix(file, "_test.rego") {
			continue
		}
		p := found[name]
		if p == nil {
			p = &OwnPolicy{Policy: Policy{Name: name}}
			found[name] = p
		}
		p.Files = append(p.Files, file)
		if err := p.describe(m); err != nil {
			faults = append(faults, faultAt("", name, m.Package.Location, "METADATA: "+err.Error()))
		}
	}
	rules := w.mine.policies()
	out := make([]OwnPolicy, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		found[name].Rules = rules[name].rules
		out = append(out, *found[name])
	}
	return out, errors.Join(faults...)
}
