package policies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/policies/bundle"
	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/isolate"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
)

// Deps holds the dependencies of an Engine. The zero value is usable.
type Deps struct {
	// Logger logs bundle failures and recoveries; nil disables logging.
	Logger *slog.Logger
	// Previous is the engine that this engine replaces. A policy directory is rejected if it no longer contains a policy that Previous had in
	// force, because the directory may be incomplete while it is being copied. nil means that this is the first engine.
	Previous *Engine
	// OnChange, if not nil, is called after a new bundle takes effect.
	OnChange func()
	// Isolate compiles an organisation's own Rego in a child process before this process compiles it. If nil, this process compiles
	// it directly; only tests and the tools for policy authors do that.
	Isolate *isolate.Runner
	// CompileWait limits how long NewEngine waits for child processes. If Rego is still being compiled after that time, NewEngine returns
	// an error that wraps isolate.ErrCompiling. 0 means no limit.
	CompileWait time.Duration
	// OnNewBundle, if not nil, is called when a bundle has been fetched and before it takes effect. It lets the gateway build its whole
	// configuration again: the callback creates an engine with this engine as Previous, and the new engine activates the bundle. replaced
	// reports whether the new engine has replaced this one; if not, this engine activates the bundle.
	OnNewBundle func(ctx context.Context) (replaced bool)
}

// Errors of Decide. The caller must refuse the call on any of them.
var (
	// ErrUnknownOrg means that the engine has no configuration for the organisation, not even one without policies.
	ErrUnknownOrg = errors.New("no policies are loaded for the organisation")
	// ErrDeadline means that the evaluation did not finish within Limits.Deadline.
	ErrDeadline = errors.New("policy evaluation took too long")
	// ErrEvaluation means that a policy failed, was undefined, or returned a value of the wrong type.
	ErrEvaluation = errors.New("policy evaluation failed")
)

// Engine evaluates the policies of all organisations. Its configuration never changes; only bundles replace the compiled state of an
// organisation. It is safe for concurrent use.
type Engine struct {
	limits  Limits
	deps    Deps
	places  chan struct{}            // one per running evaluation
	shares  map[string]chan struct{} // each organisation's share of places
	configs map[string]Config
	sources map[string]*bundle.Source
	states  atomic.Pointer[map[string]*orgState] // by organisation; replaced atomically

	mu sync.Mutex // serializes writers of states; guards arriving
	// arriving holds the bundles for which Deps.OnNewBundle is running, by organisation.
	arriving map[string]*bundle.Found
}

// orgState is the compiled state of one organisation. It is nil while the organisation's first bundle is pending.
type orgState struct {
	*compiler.Compiled

	section    Config
	sources    string           // identifies the sources
	own        compiler.OrgRego // the organisation's own Rego
	revision   string           // covers policies and exceptions
	exceptions []exception
	memory     *policyinput.Cache[*Decision] // nil if verdicts are not cached
	share      chan struct{}                 // one element per place the organisation may hold; nil without a limit
	converter  policyinput.Converter
}

// NewEngine compiles the policies of every organisation. An organisation without policies must be present with a zero Config. If the
// configuration has faults, NewEngine returns an error that joins all of them, each a *policyconfig.Error. The slices in orgs must not be
// modified afterwards.
func NewEngine(limits Limits, orgs map[string]Config, deps Deps) (*Engine, error) {
	if err := limits.Validate(); err != nil {
		return nil, fmt.Errorf("policy limits: %w", err)
	}
	limits.Concurrency = cmp.Or(limits.Concurrency, 2*runtime.GOMAXPROCS(0))
	deps.Logger = cmp.Or(deps.Logger, slog.New(slog.DiscardHandler))
	e := &Engine{
		limits: limits, deps: deps, places: make(chan struct{}, limits.Concurrency), shares: sharesOf(orgs, limits.Concurrency),
		configs: maps.Clone(orgs), sources: map[string]*bundle.Source{}, arriving: map[string]*bundle.Found{},
	}
	if err := e.load(context.Background()); err != nil { //nolint:forbidigo // compiling is not cancelled
		return nil, err
	}
	e.deps.Previous = nil // no longer needed
	return e, nil
}

// sharesOf returns the semaphore of each organisation's places: half of all places, rounded up, so that the Rego of one organisation cannot
// occupy all places. A single organisation may use every place. Evaluations that outlive their deadline keep their place, even after the
// state is replaced.
func sharesOf(orgs map[string]Config, places int) map[string]chan struct{} {
	shares := map[string]chan struct{}{}
	if len(orgs) == 1 {
		return shares
	}
	for org := range orgs {
		shares[org] = make(chan struct{}, places-places/2)
	}
	return shares
}

// state returns the compiled state of an organisation. It returns an error if the organisation is unknown or its first bundle is pending.
func (e *Engine) state(org string) (*orgState, error) {
	o, known := (*e.states.Load())[org]
	if !known {
		return nil, fmt.Errorf("%w: %s", ErrUnknownOrg, org)
	}
	if o == nil {
		return nil, fmt.Errorf("%w: %s", ErrBundlePending, org)
	}
	return o, nil
}

// Revision returns the revision of the compiled state that decides an organisation's calls. ok is false if the organisation is
// unknown.
func (e *Engine) Revision(org string) (revision string, ok bool) {
	o, err := e.state(org)
	if err != nil {
		return "", false
	}
	return o.revision, true
}

// PoliciesReading returns the names of the organisation's policies that read the input at the given path, or anything above or below it,
// without duplicates. For example, the path ("cost") selects policies that read the price of a call.
func (e *Engine) PoliciesReading(org string, path ...string) []string {
	o, err := e.state(org)
	if err != nil || !o.Reads.Touches(path...) {
		return nil
	}
	var out []string
	for _, c := range o.Calls {
		if c.Reads.Touches(path...) && !slices.Contains(out, c.Entry.Policy) {
			out = append(out, c.Entry.Policy)
		}
	}
	return out
}

// Decide evaluates the policies of an organisation for a call. It returns within Limits.Deadline. If a policy whose entry sets ratchet
// denies an update, Decide also evaluates the resource before the update, and turns violations that the update does not make worse into
// warnings; it then returns within twice that time. If Decide returns an error, the caller must refuse the call.
func (e *Engine) Decide(ctx context.Context, org string, in *Input) (Decision, error) {
	o, err := e.state(org)
	if err != nil {
		return Decision{}, err
	}
	doc, err := in.Document()
	if err != nil {
		return Decision{}, err
	}
	verdict, err := e.verdict(ctx, o, doc, in.Time)
	if err != nil {
		return Decision{}, err
	}
	d := *verdict
	d.except(o.exceptions, in)
	e.ratchet(ctx, o, in, &d)
	if err := d.combineMutations(in.Request.Body, e.limits.MaxMutations); err != nil {
		return Decision{}, err
	}
	return d, nil
}

// enter waits for a place in room. A nil room is unlimited.
func (e *Engine) enter(ctx context.Context, room chan struct{}, deadline <-chan time.Time) error {
	if room == nil {
		return nil
	}
	select {
	case room <- struct{}{}:
		return nil
	case <-deadline:
		return fmt.Errorf("%w: no evaluation slot became free within %s", ErrDeadline, e.limits.Deadline)
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrEvaluation, context.Cause(ctx))
	}
}

// release releases the place taken by enter.
func release(room chan struct{}) {
	if room != nil {
		<-room
	}
}
