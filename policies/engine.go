package policies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// Deps are the live things an Engine may use; the zero value is usable.
type Deps struct {
	// DocURL is put before a policy's page name in Violation.Doc.
	// Default "docs/policies/".
	DocURL string
	// Now is the clock that bundles are polled by; nil is time.Now.
	Now func() time.Time
	// Logger is told when a bundle is not taken, and when one is again; nil is
	// none.
	Logger *slog.Logger
	// Previous is the engine that this one takes the place of: a directory that lost
	// a policy which was in force there is refused. nil is none.
	Previous *Engine
	// OnChange is called after a bundle came into force; nil is none.
	OnChange func()
	// Isolate compiles own Rego in a child process before this process does; nil compiles it
	// here alone, for tests and for tools of its author.
	Isolate *isolate.Runner
	// CompileWait is how long NewEngine waits for child processes. Own Rego that has not been
	// compiled by then is a fault, whose cause is isolate.ErrCompiling. 0 waits for all of it.
	CompileWait time.Duration
	// OnNewBundle is called with a new bundle fetched and not yet in force. It may make an engine with other sections, with this one as Before, which
	// then takes the bundle, and reports whether it put one in this one's place. nil is none.
	OnNewBundle func(ctx context.Context) (replaced bool)
}

// Errors of Decide. On any error, the call must be refused.
var (
	// ErrUnknownOrg: the engine has no policies for the organisation, not even
	// an empty list.
	ErrUnknownOrg = errors.New("no policies loaded for the organisation")
	// ErrDeadline: no decision within Limits.Deadline.
	ErrDeadline = errors.New("policy evaluation took too long")
	// ErrEvaluation: a policy failed, was undefined, or answered in a shape that
	// is not a verdict.
	ErrEvaluation = errors.New("policy evaluation failed")
)

// Engine decides. It may be used from several goroutines at once.
type Engine struct {
	limits Limits
	deps   Deps
	places chan struct{} // one per running evaluation
	alone  atomic.Bool   // there is one organisation only, which may have all places
	now    atomic.Pointer[state]

	changed chan struct{} // Run must look at the bundles

	mu      sync.Mutex // held by writers of the state; guards the fields below
	configs map[string]Config
	sources map[string]*bundle.Source
	// arriving are the bundles that Deps.Arriving is being called for, by organisation.
	arriving map[string]*bundle.Found
	reloads  int

	sharing sync.Mutex               // guards shares
	shares  map[string]chan struct{} // of the places, by organisation; they outlive states
}

// state is everything that decides, swapped as one.
type state struct {
	orgs map[string]*orgState
}

// orgState is one organisation in a state; a nil one waits for its bundle.
type orgState struct {
	*compiler.Compiled

	section    Config
	sources    string           // names its sources
	own        compiler.OrgRego // its own Rego
	revision   string           // of the policies and the exceptions
	exceptions []exception
	memory     *policyinput.Cache[*Decision] // nil if none are remembered
	share      chan struct{}                 // one per place the organisation may hold
	converter  policyinput.Converter
}

// NewEngine compiles and prepares every organisation. An organisation without
// policies must be there too, with a zero Config. Its error joins all faults,
// each a *section.Error.
func NewEngine(limits Limits, orgs map[string]Config, deps Deps) (*Engine, error) {
	if err := limits.Validate(); err != nil {
		return nil, fmt.Errorf("policy limits: %w", err)
	}
	limits.Concurrency = cmp.Or(limits.Concurrency, 2*runtime.GOMAXPROCS(0))
	deps.DocURL = cmp.Or(deps.DocURL, "docs/policies/")
	if deps.Now == nil {
		deps.Now = time.Now
	}
	deps.Logger = cmp.Or(deps.Logger, slog.New(slog.DiscardHandler))
	e := &Engine{
		limits: limits, deps: deps, places: make(chan struct{}, limits.Concurrency),
		changed: make(chan struct{}, 1), shares: map[string]chan struct{}{}, arriving: map[string]*bundle.Found{},
	}
	if err := e.Reload(context.Background(), orgs); err != nil { //nolint:forbidigo // compiling is not cancelled
		return nil, err
	}
	e.deps.Previous = nil // it is not needed any more
	return e, nil
}

// Revision names the compiled state an organisation's calls are judged by;
// ok is false for an unknown organisation.
func (e *Engine) Revision(org string) (revision string, ok bool) {
	o := e.now.Load().orgs[org]
	if o == nil {
		return "", false
	}
	return o.revision, true
}

// PoliciesReading lists the policies of an organisation that read anything at, above or below
// a path of the input, each once.
func (e *Engine) PoliciesReading(org string, path ...string) []string {
	o := e.now.Load().orgs[org]
	if o == nil {
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

// Decide judges a call by an organisation's policies. It returns within
// Limits.Deadline, or twice that where a denied update is held against the resource
// as it is. On any error the caller must refuse the call.
func (e *Engine) Decide(ctx context.Context, org string, in *Input) (Decision, error) {
	o, known := e.now.Load().orgs[org]
	if !known {
		return Decision{}, fmt.Errorf("%w: %s", ErrUnknownOrg, org)
	}
	if o == nil {
		return Decision{}, fmt.Errorf("%w: %s", ErrBundlePending, org)
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

// enter waits for room; nil has room for all.
func (e *Engine) enter(ctx context.Context, room chan struct{}, deadline <-chan time.Time) error {
	if room == nil {
		return nil
	}
	select {
	case room <- struct{}{}:
		return nil
	case <-deadline:
		return fmt.Errorf("%w: no free place within %s", ErrDeadline, e.limits.Deadline)
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrEvaluation, context.Cause(ctx))
	}
}

// leave makes the room that enter took free again.
func leave(room chan struct{}) {
	if room != nil {
		<-room
	}
}

// shareOf is an organisation's share of the places: half of them, rounded up,
// so that its Rego never takes them all. Evaluations left behind hold
// on to theirs, also when a state is swapped.
func (e *Engine) shareOf(org string) chan struct{} {
	e.sharing.Lock()
	defer e.sharing.Unlock()
	if e.shares[org] == nil {
		e.shares[org] = make(chan struct{}, e.limits.Concurrency-e.limits.Concurrency/2)
	}
	return e.shares[org]
}
