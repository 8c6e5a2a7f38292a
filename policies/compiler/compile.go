package compiler

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/topdown/cache"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/policies/regosandbox"
)

// Compiled holds the compiled policies of an organisation. It is immutable.
type Compiled struct {
	// Revision identifies everything that decisions depend on.
	Revision string
	// Calls are the policy calls of the entrypoint's rules, in order.
	Calls []Call
	// OwnPolicies lists the organisation's own policies, sorted by name.
	OwnPolicies []string

	*linked

	store    storage.Store              // the organisation's data, and the parameters of the calls
	patterns cache.InterQueryValueCache // compiled regular expressions and globs
}

// Options describes what to compile for one organisation.
type Options struct {
	Org     string
	Entries []policyconfig.Entry
	Rego    OrgRego
	// KnownSource is the digest of own Rego whose references to input members have been checked by an earlier compilation, or "".
	KnownSource string
	// Prints keeps calls of print; otherwise they are removed.
	Prints bool
}

// Compile links and compiles the policies of one organisation.
func Compile(ctx context.Context, s *Options) (*Compiled, error) {
	lib, org, mine := loadLibrary(), s.Org, s.Rego
	p, err := plan(lib, s)
	if err != nil {
		return nil, err
	}
	calls, files := p.calls, p.files(mine.refersToLibrary())
	source := entrypoint(calls)
	form := mine.formOf(source)
	if s.Prints {
		form += "\nprints"
	}
	l, err := linkedForms.of(form, func() (*linked, error) { return link(ctx, lib, s, files, source, calls) })
	if err != nil {
		return nil, err
	}
	params := l.bind(calls)
	if err := ratchets(org, calls); err != nil {
		return nil, err
	}
	data := map[string]any{}
	maps.Copy(data, mine.data)
	data[reservedRoot] = params
	return &Compiled{
		Revision: revision(lib, files, source, calls, mine), Calls: calls, OwnPolicies: slices.Sorted(maps.Keys(p.mine)),
		linked: l, store: newStore(data), patterns: patternCache(ctx),
	}, ctx.Err()
}

// SameAs reports whether c and other share one compiled form.
func (c *Compiled) SameAs(other *Compiled) bool { return c.linked == other.linked }

// withLibrary returns copies of the organisation's modules and of the given library modules.
func (o OrgRego) withLibrary(lib *library, files []string) map[string]*ast.Module {
	modules := map[string]*ast.Module{}
	for _, file := range files {
		modules[file] = lib.module(file).Copy()
	}
	for file, m := range o.modules {
		modules[file] = m.Copy()
	}
	return modules
}

// Evaluation is one evaluation of compiled policies. Its queries share intermediate results. Evaluating them separately keeps the
// stack shallow and shows which query failed.
type Evaluation struct {
	*Compiled

	input  *ast.Term
	now    time.Time
	txn    storage.Transaction
	shared topdown.VirtualCache
}

// Begin starts an evaluation. Call End when it is finished.
func (c *Compiled) Begin(ctx context.Context, input *ast.Term, now time.Time) (*Evaluation, error) {
	txn, err := c.store.NewTransaction(ctx)
	if err != nil {
		return nil, err
	}
	return &Evaluation{Compiled: c, input: input, now: now, txn: txn, shared: topdown.NewVirtualCache()}, nil
}

// End ends the evaluation.
func (e *Evaluation) End(ctx context.Context) { e.store.Abort(ctx, e.txn) }

// Query returns the query of a call, with restricted functions; see package regosandbox.
func (e *Evaluation) Query(i int, cancel topdown.Cancel) *topdown.Query {
	q := topdown.NewQuery(e.queries[i]).WithCompiler(e.compiler).WithStore(e.store).WithTransaction(e.txn).
		WithInput(e.input).WithTime(e.now).WithInterQueryBuiltinValueCache(e.patterns).WithVirtualCache(e.shared).WithMetrics(metrics.NoOp())
	if q = regosandbox.Confine(q, cancel); e.Calls[i].foreign() {
		q = regosandbox.Guarded(q, cancel)
	}
	return q
}

// Answer is the variable to which a query binds its result.
const Answer = ast.Var("answer")

// patternCache returns a separate cache of compiled patterns for an organisation.
func patternCache(ctx context.Context) cache.InterQueryValueCache {
	most := 256
	return cache.NewInterQueryValueCache(ctx, &cache.Config{
		InterQueryBuiltinValueCache: cache.InterQueryBuiltinValueCacheConfig{MaxNumEntries: &most},
	})
}

// plan resolves an organisation's entries to policy calls.
func plan(lib *library, s *Options) (*planner, error) {
	p := &planner{lib: lib, org: s.Org, mine: s.Rego.policies()}
	for i, e := range s.Entries {
		p.entry(fault.Index("policies", i), e)
	}
	for _, name := range slices.Sorted(maps.Keys(p.mine)) {
		if lib.policy(name) != nil {
			p.faults = append(p.faults, faultAt(s.Org, name, p.mine[name].at, "has the same name as a library policy"))
			continue
		}
		if !slices.ContainsFunc(s.Entries, func(e policyconfig.Entry) bool { return e.Policy == name }) {
			p.own("policies", policyconfig.Entry{Policy: name}, p.mine[name])
		}
	}
	return p, errors.Join(p.faults...)
}

// revision returns the digest of everything that decisions depend on.
func revision(lib *library, files []string, source string, calls []Call, mine OrgRego) string {
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%d:%s%d:%s", len(f), f, len(lib.sources[f]), lib.sources[f])
	}
	fmt.Fprintf(h, "|%d:%s|%s", len(source), source, mine.digest)
	for _, c := range calls {
		_ = json.NewEncoder(h).Encode(c.params) // decoded values can be encoded
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// policyOfFile returns the policy in a library file, for error messages.
func policyOfFile(file string) string {
	name, ok := strings.CutPrefix(file, "rego/")
	if !ok || strings.Contains(name, "/") {
		return ""
	}
	return strings.TrimSuffix(name, ".rego")
}

// newCompiler returns a compiler with the settings of all organisations. taken reports which paths contain data.
func newCompiler(lib *library, taken func([]string) (bool, error)) *ast.Compiler {
	return ast.NewCompiler().WithCapabilities(regosandbox.Capabilities()).WithStrict(true).SetErrorLimit(0).
		WithEnablePrintStatements(false).WithDefaultRegoVersion(ast.RegoV1).
		WithSchemas(lib.schemas).WithPathConflictsCheck(taken)
}

// newStore returns a store with an organisation's data.
func newStore(data map[string]any) storage.Store {
	return inmem.NewFromObjectWithOpts(data, inmem.OptRoundTripOnWrite(false), inmem.OptReturnASTValuesOnRead(true))
}
