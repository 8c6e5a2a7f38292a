package compiler

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
	"github.com/tollgate-dev/tollgate/policies/rego"
	"github.com/tollgate-dev/tollgate/policies/regosandbox"
)

// Policy describes a library policy.
type Policy struct {
	// Name is the name used in Entry.Policy, such as gpu_allow_list.
	Name string
	// Title and Description are plain text.
	Title, Description string
	// Params lists the parameters, sorted by name.
	Params []Param
	// AnyOf lists parameters of which at least one is required.
	AnyOf []string
	// Mutates reports whether the policy may change bodies.
	Mutates bool
	// Example is a set of example parameters.
	Example map[string]any

	params params
	rules  []string // violations, mutations or both
}

// library is the embedded Rego. Each file is parsed once, when it is first needed. Modules are copied before compilation, because
// the compiler modifies them.
type library struct {
	names   []string                // of the policies
	files   map[string]func() *file // by name
	sources map[string]string       // by file
	schemas *ast.SchemaSet          // of the input
}

// file is a parsed library file.
type file struct {
	module *ast.Module
	policy *Policy // nil if it contains no policy
}

// Packages of the library.
const (
	libraryPackage = "tollgate.library." // one package per policy
	supportPackage = "tollgate."         // shared functions
	reservedRoot   = "tollgate"          // root of both in data
	libraryDir     = "rego/"             // prefix of file names
)

// loadLibrary reads the embedded Rego. The result is shared and immutable.
var loadLibrary = sync.OnceValue(func() *library {
	lib, err := readLibrary(rego.Files)
	if err != nil {
		panic(err) // the embedded library is broken
	}
	return lib
})

// Library returns the library policies, sorted by name.
func Library() []Policy {
	lib := loadLibrary()
	out := make([]Policy, 0, len(lib.names))
	for _, name := range lib.names {
		out = append(out, *lib.policy(name))
	}
	return out
}

// Lookup returns a library policy by its name.
func Lookup(name string) (p Policy, ok bool) {
	found := loadLibrary().policy(name)
	if found == nil {
		return p, false
	}
	return *found, true
}

// IsLibraryPolicy reports whether the library contains a policy.
func IsLibraryPolicy(policy string) bool {
	_, ok := Lookup(policy)
	return ok
}

// LibraryEntries returns the entries that the library can resolve, without those that require the organisation's own Rego.
func LibraryEntries(entries []policyconfig.Entry) []policyconfig.Entry {
	return slices.DeleteFunc(slices.Clone(entries),
		func(e policyconfig.Entry) bool { return policyName.MatchString(e.Policy) && !IsLibraryPolicy(e.Policy) })
}

func readLibrary(files fs.FS) (*library, error) {
	lib := &library{files: map[string]func() *file{}, sources: map[string]string{}}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".rego") || strings.HasSuffix(name, "_test.rego") {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if !strings.Contains(name, "/") {
			lib.names = append(lib.names, strings.TrimSuffix(name, ".rego"))
		}
		name = libraryDir + name
		lib.sources[name] = string(text)
		lib.files[name] = sync.OnceValue(func() *file {
			f, err := parseFile(name, string(text))
			if err != nil {
				panic(fmt.Sprintf("policy library: %s: %v", name, err)) // the embedded library is broken
			}
			return f
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("policy library: %w", err)
	}
	slices.Sort(lib.names)
	lib.schemas = ast.NewSchemaSet()
	lib.schemas.Put(ast.SchemaRootRef, policyinput.DecodedSchema())
	return lib, nil
}

// parseFile parses one file, whose name must match its package. A package below tollgate.library is a policy.
func parseFile(name, text string) (*file, error) {
	m, err := ast.ParseModuleWithOpts(name, text, ast.ParserOptions{
		Capabilities: regosandbox.Capabilities(), ProcessAnnotation: true, RegoVersion: ast.RegoV1,
	})
	if err != nil {
		return nil, LocateErrors("", err)
	}
	if fileOf(packageName(m)) != name {
		return nil, fmt.Errorf("contains the package %s", packageName(m))
	}
	policy, isPolicy := strings.CutPrefix(packageName(m), libraryPackage)
	if !isPolicy {
		return &file{module: m}, nil
	}
	p, err := newPolicy(policy, m)
	return &file{module: m, policy: p}, err
}

// fileOf returns the file of a library package.
func fileOf(pkg string) string {
	if name, isPolicy := strings.CutPrefix(pkg, libraryPackage); isPolicy {
		return libraryDir + name + ".rego"
	}
	return libraryDir + "support/" + strings.TrimPrefix(pkg, supportPackage) + ".rego"
}

// policy returns a policy by its name, or nil.
func (l *library) policy(name string) *Policy {
	if parsed := l.files[fileOf(libraryPackage+name)]; parsed != nil {
		return parsed().policy
	}
	return nil
}

// module returns the module of an existing file.
func (l *library) module(name string) *ast.Module { return l.files[name]().module }

// modules returns all modules by file.
func (l *library) modules() map[string]*ast.Module {
	out := make(map[string]*ast.Module, len(l.files))
	for name := range l.files {
		out[name] = l.module(name)
	}
	return out
}

func newPolicy(name string, m *ast.Module) (*Policy, error) {
	p := &Policy{Name: name}
	if err := p.describe(m); err != nil {
		return nil, err
	}
	p.rules = slices.DeleteFunc([]string{"violations", "mutations"}, func(rule string) bool { return !definesFunction(m, rule) })
	p.Mutates = slices.Contains(p.rules, "mutations")
	switch {
	case p.Title == "" || p.Description == "":
		return nil, errors.New("METADATA must have a title and a description")
	case len(p.rules) == 0:
		return nil, errors.New("must define violations(params) or mutations(params)")
	}
	return p, nil
}

// describe reads the METADATA of a module's package.
func (p *Policy) describe(m *ast.Module) (err error) {
	for _, a := range m.Annotations {
		if a.Scope != "package" {
			continue
		}
		p.Title, p.Description = a.Title, strings.TrimSpace(a.Description)
		if p.params, err = newParams(p.Name, a.Custom); err != nil {
			return err
		}
		p.Params, p.AnyOf = p.params.list, p.params.anyOf
		p.Example, _ = a.Custom["example"].(map[string]any)
	}
	return nil
}

// closure returns the files that policies need: their own and, transitively, the files of imported packages.
func (l *library) closure(policies []string) []string {
	seen := map[string]bool{}
	var need func(name string)
	need = func(name string) {
		if seen[name] || l.files[name] == nil {
			return
		}
		seen[name] = true
		for _, i := range l.module(name).Imports {
			if ref, ok := i.Path.Value.(ast.Ref); ok {
				need(fileOf(strings.TrimPrefix(ref.String(), "data.")))
			}
		}
	}
	for _, name := range policies {
		need(fileOf(libraryPackage + name))
	}
	return slices.Sorted(maps.Keys(seen))
}

// packageName returns the package of a module without the leading data.
func packageName(m *ast.Module) string {
	return strings.TrimPrefix(m.Package.Path.String(), "data.")
}

// definesFunction reports whether a module defines a function with one parameter.
func definesFunction(m *ast.Module, name string) bool {
	return slices.ContainsFunc(m.Rules, func(r *ast.Rule) bool {
		return r.Head.Ref().String() == name && len(r.Head.Args) == 1
	})
}
