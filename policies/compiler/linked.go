package compiler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"weak"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/tollgate-dev/tollgate/policies/policyinput"
	"github.com/tollgate-dev/tollgate/policies/regosandbox"
)

// linked is the compiled form of calls. It has no parameters and no data, which the store
// of an organisation holds, and never changes.
type linked struct {
	compiler *ast.Compiler
	program  *Program   // of the library's calls; nil without
	queries  []ast.Body // one per call, binding answer
	// reads is the part of the input that each call can read, all the part that they can read together.
	reads []*policyinput.Projection
	all   *policyinput.Projection
}

// linkedCache are compiled forms, weak pointers by their sources: each as long as an
// organisation has it.
type linkedCache struct{ sync.Map }

// standing are those of the process.
var standing linkedCache

// formOf names the sources of an entrypoint's form beside the library: the
// organisation's own Rego, and the files that faults are told by.
func (o OrgRego) formOf(source string) string {
	if len(o.modules) == 0 {
		return source
	}
	return strings.Join(append(slices.Sorted(maps.Keys(o.modules)), o.digest, source), "\n")
}

// of returns a form, made by link if no organisation has it. Two that ask at once may each
// make it.
func (f *linkedCache) of(source string, link func() (*linked, error)) (*linked, error) {
	if known, ok := f.Load(source); ok {
		if l := known.(weak.Pointer[linked]).Value(); l != nil {
			return l, nil
		}
	}
	l, err := link()
	if err != nil {
		return nil, err
	}
	known := weak.Make(l)
	f.Store(source, known)
	runtime.AddCleanup(l, func(source string) { f.CompareAndDelete(source, known) }, source)
	return l, nil
}

// link compiles the calls of a section, behind the checks of its own Rego.
func link(ctx context.Context, lib *library, s *Options, files []string, source string, calls []Call) (*linked, error) {
	org, mine := s.Org, s.Rego
	if faults := regosandbox.Check(mine.modules); len(faults) > 0 {
		return nil, LocateErrors(org, faults)
	}
	if err := mine.constants(org); err != nil {
		return nil, err
	}
	modules := mine.beside(lib, files)
	entry, err := ast.ParseModuleWithOpts(entryFile, source, ast.ParserOptions{RegoVersion: ast.RegoV1})
	if err != nil {
		return nil, located(org, err, policyOfFile)
	}
	modules[entryFile] = entry

	l := &linked{compiler: newCompiler(lib, mine.taken).WithEnablePrintStatements(s.Prints), queries: make([]ast.Body, len(calls))}
	c := l.compiler
	c.Compile(modules)
	if c.Failed() {
		return nil, located(org, c.Errors, policyOfFile)
	}
	faults := mine.answers(org, c)
	if s.KnownSource == "" || s.KnownSource != mine.digest {
		faults = errors.Join(faults, mine.members(org, mine.beside(lib, files)))
	}
	if faults != nil {
		return nil, faults
	}
	if l.program, err = programOf(ctx, c, calls); err != nil {
		return nil, err
	}
	regosandbox.Bind(c.Modules)
	for i := range calls {
		q := ast.MustParseBody(fmt.Sprintf("%s = data.%s.c%d", Answer, entryPackage, i))
		if l.queries[i], err = c.QueryCompiler().Compile(q); err != nil {
			return nil, located(org, err, policyOfFile)
		}
	}
	l.reads, l.all = readsOf(c, len(calls))
	return l, nil
}
