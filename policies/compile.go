package policies

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/topdown/cache"
)

// own is an organisation's own Rego and data, from a directory or a bundle.
type own struct {
	modules map[string]*ast.Module // by file; copied before use
	sources map[string]string      // by file
	data    map[string]any
	digest  string // of everything above, and the bundle's own revision
}

// ownPackage is where an organisation's own policies live: policies.<name>.
const ownPackage = "policies."

// compiled is an organisation's policies, ready to be evaluated. It never
// changes.
type compiled struct {
	org      string
	revision string
	calls    []call
	except   []exception
	source   string // the entrypoint
	compiler *ast.Compiler
	store    storage.Store
	builtins map[string]*topdown.Builtin // beside OPA's own
	queries  []ast.Body                  // one per call, binding answer
	reads    *projection
	patterns cache.InterQueryValueCache // compiled regular expressions and globs
}

// compileOrg links and compiles one organisation. Its errors are located.
func compileOrg(ctx context.Context, lib *library, org string, cfg Config, mine own, docs string) (*compiled, error) {
	calls, files, err := plan(lib, org, cfg, mine, docs)
	if err != nil {
		return nil, err
	}
	if err := checkFormats(org, mine.modules); err != nil {
		return nil, err
	}
	source, err := link(calls)
	if err != nil {
		return nil, &LoadError{Org: org, Message: err.Error()}
	}
	modules := map[string]*ast.Module{}
	for _, file := range files {
		modules[file] = lib.modules[file].Copy()
	}
	for file, m := range mine.modules {
		modules[file] = m.Copy()
	}
	entry, err := ast.ParseModuleWithOpts(entryFile, source, ast.ParserOptions{RegoVersion: ast.RegoV1})
	if err != nil {
		return nil, loadErrors(org, err, policyOfFile)
	}
	modules[entryFile] = entry

	c := newCompiler(lib, mine.taken)
	c.Compile(modules)
	if c.Failed() {
		return nil, loadErrors(org, c.Errors, policyOfFile)
	}
	bind(c.Modules)
	queries := make([]ast.Body, len(calls))
	for i := range calls {
		q := ast.MustParseBody(fmt.Sprintf("%s = data.%s.c%d", answerVar, entryPackage, i))
		if queries[i], err = c.QueryCompiler().Compile(q); err != nil {
			return nil, loadErrors(org, err, policyOfFile)
		}
	}
	except, err := prepareExceptions(org, cfg.Exceptions)
	if err != nil {
		return nil, err
	}
	return &compiled{
		org: org, revision: revision(lib, files, source, mine, cfg.Exceptions), calls: calls, except: except, source: source,
		compiler: c, queries: queries, reads: readsOf(c), store: newStore(mine.data),
		builtins: lib.builtins, patterns: patternCache(ctx),
	}, ctx.Err()
}

// patternCache keeps an organisation's compiled patterns apart from others'.
func patternCache(ctx context.Context) cache.InterQueryValueCache {
	most := 256
	return cache.NewInterQueryValueCache(ctx, &cache.Config{
		InterQueryBuiltinValueCache: cache.InterQueryBuiltinValueCacheConfig{MaxNumEntries: &most},
	})
}

// plan resolves an organisation's entries to calls, and lists the library
// files they need.
func plan(lib *library, org string, cfg Config, mine own, docs string) ([]call, []string, error) {
	p := planner{lib: lib, org: org, mine: mine.policies(), docs: docs}
	for i, e := range cfg.Policies {
		p.entry(fmt.Sprintf("policies[%d]", i), e)
	}
	for _, name := range slices.Sorted(maps.Keys(p.mine)) {
		if lib.policies[name] != nil {
			at := p.mine[name].at
			p.faults = append(p.faults, &LoadError{
				Org: org, Policy: name, File: at.File, Row: at.Row, Col: at.Col, Message: "has the name of a policy of the library",
			})
			continue
		}
		if !slices.ContainsFunc(cfg.Policies, func(e Entry) bool { return e.Policy == name }) {
			p.own("", Entry{Policy: name}, p.mine[name])
		}
	}
	for _, err := range cfg.lifted(lib, p.mine) {
		p.fault("", err)
	}
	if len(p.faults) > 0 {
		return nil, nil, joinFaults(p.faults)
	}
	return p.calls, p.files(len(mine.modules) > 0), nil
}

// prepareExceptions checks and prepares an organisation's exceptions.
func prepareExceptions(org string, list []Exception) ([]exception, error) {
	var faults []error
	for _, err := range validateExceptions(list) {
		faults = append(faults, &LoadError{Org: org, Message: err.Error()})
	}
	if len(faults) > 0 {
		return nil, joinFaults(faults)
	}
	out := make([]exception, 0, len(list))
	for _, x := range list {
		prepared, err := prepareException(x)
		if err != nil {
			return nil, &LoadError{Org: org, Policy: x.Policy, Message: "exception " + x.ID + ": " + err.Error()}
		}
		out = append(out, prepared)
	}
	return out, nil
}

// revision names the content of everything that decides.
func revision(lib *library, files []string, source string, mine own, except []Exception) string {
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%d:%s%d:%s", len(f), f, len(lib.sources[f]), lib.sources[f])
	}
	granted, err := json.Marshal(except)
	if err != nil { // exceptions were validated: they hold JSON values only
		granted = fmt.Append(nil, except)
	}
	fmt.Fprintf(h, "|%d:%s|%s|%s", len(source), source, mine.digest, granted)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// policyOfFile names the policy a library file holds, for error messages.
func policyOfFile(file string) string {
	name, ok := strings.CutPrefix(file, "rego/")
	if !ok || strings.Contains(name, "/") {
		return ""
	}
	return strings.TrimSuffix(name, ".rego")
}

// readsOf finds every input path the entrypoint can come to read: the rules
// reachable from it, each reference cut at its first variable.
func readsOf(c *ast.Compiler) *projection {
	reads := &projection{}
	seen := map[any]bool{}
	var queue []any
	for _, m := range c.Modules {
		if packageName(m) == entryPackage {
			for _, r := range m.Rules {
				queue = append(queue, r)
			}
		}
	}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		if seen[next] {
			continue
		}
		seen[next] = true
		if r, ok := next.(*ast.Rule); ok {
			readsOfRule(r, reads)
			if r.Else != nil {
				queue = append(queue, r.Else)
			}
		}
		for dep := range c.Graph.Dependencies(next) {
			queue = append(queue, dep)
		}
	}
	reads.freeze()
	return reads
}

func readsOfRule(r *ast.Rule, reads *projection) {
	var visit *ast.GenericVisitor
	visit = ast.NewGenericVisitor(func(x any) bool {
		switch v := x.(type) {
		case ast.Ref:
			if !v[0].Equal(ast.InputRootDocument) {
				return false
			}
			reads.add(inputPath(v))
			for _, t := range v[1:] { // a reference may hold references
				visit.Walk(t)
			}
			return true
		case ast.Var:
			if v.Equal(ast.InputRootDocument.Value) {
				reads.add(nil)
			}
		}
		return false
	})
	visit.Walk(r)
}

// inputPath is the constant part of a reference into the input.
func inputPath(ref ast.Ref) []string {
	var path []string
	for _, t := range ref[1:] {
		s, ok := t.Value.(ast.String)
		if !ok {
			break
		}
		path = append(path, string(s))
	}
	return path
}
