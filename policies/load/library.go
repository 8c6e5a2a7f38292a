package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/tollgate-dev/tollgate/policies/record"
	"github.com/tollgate-dev/tollgate/policies/rego"
	"github.com/tollgate-dev/tollgate/policies/sandbox"
)

// Policy describes one policy of the library.
type Policy struct {
	// Name is what Entry.Policy says, e.g. gpu_allow_list.
	Name string
	// Title and Description are for people.
	Title, Description string
	// Params are its parameters, by name.
	Params []Param
	// AnyOf lists parameters of which at least one must be given.
	AnyOf []string
	// Mutates tells that it may change bodies.
	Mutates bool
	// Example is a set of parameters that make sense.
	Example map[string]any

	params  params
	judges  bool // it has violations
	modules []string
}

// library is the embedded Rego, parsed once. Modules are copied before they
// are compiled: the compiler rewrites them.
type library struct {
	policies map[string]*Policy
	names    []string
	modules  map[string]*ast.Module // by file
	imports  map[string][]string    // file to the library files it needs
	sources  map[string]string      // by file
	schemas  *ast.SchemaSet         // of the input
}

// The packages of the library.
const (
	libraryPackage = "tollgate.library." // one package per policy
	supportPackage = "tollgate."         // what they share
	reservedRoot   = "tollgate"          // of both, in data
	libraryDir     = "rego/"             // put before the names of their files
)

// loadLibrary parses the embedded Rego. Its result is shared and immutable.
var loadLibrary = sync.OnceValues(func() (*library, error) {
	return parseLibrary(rego.Files)
})

// Library lists the policies of the library by name.
func Library() ([]Policy, error) {
	lib, err := loadLibrary()
	if err != nil {
		return nil, err
	}
	out := make([]Policy, 0, len(lib.names))
	for _, name := range lib.names {
		out = append(out, *lib.policies[name])
	}
	return out, nil
}

// Known reports whether the library has a policy.
func Known(policy string) bool {
	lib, err := loadLibrary()
	return err == nil && lib.policies[policy] != nil
}

// OfLibrary returns the entries without those that only an organisation's own
// Rego can resolve.
func OfLibrary(entries []Entry) []Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return policyName.MatchString(e.Policy) && !Known(e.Policy) })
}

func parseLibrary(files fs.FS) (*library, error) {
	lib := &library{
		policies: map[string]*Policy{},
		modules:  map[string]*ast.Module{},
		imports:  map[string][]string{},
		sources:  map[string]string{},
	}
	err := fs.WalkDir(files, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".rego") || strings.HasSuffix(file, "_test.rego") {
			return err
		}
		return lib.parse(files, file)
	})
	if err != nil {
		return nil, fmt.Errorf("policy library: %w", err)
	}
	var schema any
	if err := json.Unmarshal(record.Schema(), &schema); err != nil {
		return nil, fmt.Errorf("policy library: input schema: %w", err)
	}
	lib.schemas = ast.NewSchemaSet()
	lib.schemas.Put(ast.SchemaRootRef, schema)
	lib.link()
	lib.names = slices.Sorted(maps.Keys(lib.policies))
	return lib, nil
}

// parse reads one file; a package below tollgate.library is a policy.
func (l *library) parse(files fs.FS, file string) error {
	text, err := fs.ReadFile(files, file)
	if err != nil {
		return err
	}
	file = libraryDir + file
	m, err := ast.ParseModuleWithOpts(file, string(text), ast.ParserOptions{
		Capabilities: sandbox.Capabilities(), ProcessAnnotation: true, RegoVersion: ast.RegoV1,
	})
	if err != nil {
		return Located("", err)
	}
	l.modules[file], l.sources[file] = m, string(text)
	name, isPolicy := strings.CutPrefix(packageName(m), libraryPackage)
	if !isPolicy {
		return nil
	}
	if base := strings.TrimSuffix(path.Base(file), ".rego"); base != name {
		return fmt.Errorf("%s: holds policy %s", file, name)
	}
	p, err := newPolicy(name, m)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	l.policies[name] = p
	return nil
}

func newPolicy(name string, m *ast.Module) (*Policy, error) {
	p := &Policy{Name: name}
	for _, a := range m.Annotations {
		if a.Scope != "package" {
			continue
		}
		p.Title, p.Description = a.Title, strings.TrimSpace(a.Description)
		var err error
		if p.params, err = newParams(name, a.Custom); err != nil {
			return nil, err
		}
		p.Params, p.AnyOf = p.params.list, p.params.anyOf
		p.Example, _ = a.Custom["example"].(map[string]any)
	}
	p.judges = definesFunction(m, "violations")
	p.Mutates = definesFunction(m, "mutations")
	switch {
	case p.Title == "" || p.Description == "":
		return nil, errors.New("no METADATA with title and description")
	case !p.judges && !p.Mutates:
		return nil, errors.New("neither violations(params) nor mutations(params) is defined")
	}
	return p, nil
}

// link finds, for each policy, the files it needs: its own and, step by step,
// those of the packages it imports.
func (l *library) link() {
	byPackage := map[string]string{}
	for file, m := range l.modules {
		byPackage[packageName(m)] = file
	}
	for file, m := range l.modules {
		for _, i := range m.Imports {
			ref, ok := i.Path.Value.(ast.Ref)
			if !ok {
				continue
			}
			if needed, ok := byPackage[strings.TrimPrefix(ref.String(), "data.")]; ok {
				l.imports[file] = append(l.imports[file], needed)
			}
		}
	}
	for file, m := range l.modules {
		if name, ok := strings.CutPrefix(packageName(m), libraryPackage); ok {
			l.policies[name].modules = l.closure(file)
		}
	}
}

func (l *library) closure(file string) []string {
	seen := map[string]bool{file: true}
	queue := []string{file}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		for _, f := range l.imports[next] {
			if !seen[f] {
				seen[f] = true
				queue = append(queue, f)
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// packageName is a module's package without the leading data.
func packageName(m *ast.Module) string {
	return strings.TrimPrefix(m.Package.Path.String(), "data.")
}

// definesFunction reports whether a module has a function of one parameter.
func definesFunction(m *ast.Module, name string) bool {
	return slices.ContainsFunc(m.Rules, func(r *ast.Rule) bool {
		return r.Head.Ref().String() == name && len(r.Head.Args) == 1
	})
}
