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

// linked is the compiled form of policy calls. It is immutable and contains neither parameters nor data, which are in the
// organisation's store.
type linked struct {
	compiler *ast.Compiler
	program  *Program   // of the library's calls; may be nil
	queries  []ast.Body // one per call, binding answer
	// reads is the part of the input that each call can read.
	reads []*policyinput.Projection
	// Reads is the part of the input that all calls together can read.
	Reads *policyinput.Projection
}

// linkedCache holds weak pointers to compiled forms by their sources. A form lives as long as an organisation uses it.
type linkedCache struct{ sync.Map }

// linkedForms holds the compiled forms of the process.
var linkedForms linkedCache

// formOf identifies the sources of a compiled form other than the library: the organisation's own Rego, and its file names, because errors
// contain them.
func (o OrgRego) formOf(source string) string {
	if len(o.modules) == 0 {
		return source
	}
	return strings.Join(append(slices.Sorted(maps.Keys(o.modules)), o.digest, source), "\n")
}

// of returns the compiled form for source, calling link if no organisation has it. Concurrent callers may each call link.
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

// link checks the organisation's own Rego and compiles the calls.
func link(ctx context.Context, lib *library, s *Options, files []string, source string, calls []Call) (*linked, error) {
	org, mine := s.Org, s.Rego
	if faults := regosandbox.Check(mine.modules); len(faults) > 0 {
		return nil, LocateErrors(org, faults)
	}
	if err := mine.checkConstants(org); err != nil {
		return nil, err
	}
	modules := mine.withLibrary(lib, files)
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
	faults := mine.checkResultTypes(org, c)
	if s.KnownSource == "" || s.KnownSource != mine.digest {
		faults = errors.Join(faults, mine.checkMembers(org, mine.withLibrary(lib, files)))
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
	l.reads, l.Reads = readsOf(c, len(calls))
	return l, nil
}
