package policies

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies/bundle"
	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
)

// ErrBundlePending is returned by Decide while an organisation's first bundle has not been fetched.
var ErrBundlePending = errors.New("the organisation's policy bundle has not been fetched yet")

// load compiles all organisations. If it returns an error, it has not persisted any bundle.
func (e *Engine) load(ctx context.Context) error {
	next := make(map[string]*orgState, len(e.configs))
	standing := e.standing()
	var faults []error
	owned := e.allOwn(ctx, standing)
	var took []func()
	for _, org := range slices.Sorted(maps.Keys(e.configs)) {
		cfg := e.configs[org]
		if s, found, state := e.arrived(ctx, org, cfg, standing[org]); s != nil {
			next[org], e.sources[org] = state, s
			took = append(took, func() { _, _, _ = s.FinishPoll(found, nil, time.Now()) }) // Status reports the outcome
			continue
		}
		s, mine, err := owned[org].source, owned[org].rego, owned[org].err
		pending := s != nil && mine.Digest() == ""
		if err == nil && !pending {
			next[org], err = e.prepare(ctx, org, cfg, mine, standing[org])
			if err != nil && s != nil && ofRego(err) {
				err = s.Discard(err)
				pending = err == nil
			}
		}
		if err == nil && pending {
			next[org] = nil
			_, err = e.compile(ctx, org, withoutOwn(cfg), compiler.OrgRego{}, nil)
			// The last valid bundle stays in force, unless the new configuration does not fit it. Its persisted copy may be unusable, for example
			// because the key has changed.
			if last := standing[org]; err == nil && last != nil && e.deps.Previous.configs[org].Bundle != nil {
				if kept, unfit := e.prepare(ctx, org, cfg, last.own, last); unfit == nil {
					next[org] = kept
				}
			}
		}
		if last := standing[org]; err != nil && cfg.KeepOnFailure && last != nil {
			next[org], err = &orgState{
				Compiled: last.Compiled, section: last.section, sources: last.sources, own: last.own, revision: last.revision,
				exceptions: last.exceptions, memory: last.memory,
				share: e.shares[org],
			}, nil
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		if s != nil {
			e.sources[org] = s
		}
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	for _, take := range took {
		take()
	}
	for _, org := range slices.Sorted(maps.Keys(e.sources)) {
		source := e.sources[org]
		if _, _, err := source.Status(); err != nil && source.Current().Digest() == "" {
			e.deps.Logger.LogAttrs(ctx, slog.LevelError, "persisted policy bundle rejected, waiting for the download",
				slog.String("org", org), slog.String("fault", err.Error()))
		}
	}
	e.states.Store(&next)
	return nil
}

// ofRego reports whether no error is about the organisation's configuration.
func ofRego(err error) bool {
	return !slices.ContainsFunc(policyconfig.Joined(err), func(e error) bool {
		f, ok := errors.AsType[*policyconfig.Error](e)
		return !ok || f.Path != ""
	})
}

// ownSource is an organisation's own Rego and the source of its bundle, which is nil without a bundle.
type ownSource struct {
	source *bundle.Source
	rego   compiler.OrgRego
	err    error
}

// readers is the number of organisations whose own Rego is read in parallel.
const readers = 16

// allOwn reads the own Rego of all organisations. Child processes compile several in parallel, and none waits longer than
// Deps.CompileWait for another.
func (e *Engine) allOwn(ctx context.Context, standing map[string]*orgState) map[string]*ownSource {
	if e.deps.CompileWait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, e.deps.CompileWait)
		defer cancel()
	}
	out := make(map[string]*ownSource, len(e.configs))
	var reads errgroup.Group
	reads.SetLimit(readers)
	for org, cfg := range e.configs {
		found := new(ownSource)
		out[org] = found
		if cfg.Directory.IsZero() && cfg.Bundle == nil {
			continue
		}
		reads.Go(func() error {
			found.source, found.rego, found.err = e.own(ctx, org, cfg, standing[org])
			return nil
		})
	}
	_ = reads.Wait() // each result has its own error
	return out
}

// own returns an organisation's own Rego: from its directory, from the bundle file, or from the persisted copy of the bundle.
func (e *Engine) own(ctx context.Context, org string, cfg Config, standing *orgState) (*bundle.Source, compiler.OrgRego, error) {
	if cfg.Bundle == nil {
		mine, err := e.directory(ctx, org, cfg, standing)
		if err == nil {
			err = e.dropped(org, cfg, mine)
		}
		return nil, mine, err
	}
	s, err := bundle.Open(org, bundle.Config(*cfg.Bundle), e.admit(ctx, org, cfg))
	if err != nil {
		return nil, compiler.OrgRego{}, err
	}
	return s, s.Current(), nil
}

// directory reads an organisation's policy directory. If its Rego is already in force, it is not parsed again.
func (e *Engine) directory(ctx context.Context, org string, cfg Config, standing *orgState) (compiler.OrgRego, error) {
	d, err := compiler.OpenDirectory(org, cfg.Directory)
	if err != nil {
		return compiler.OrgRego{}, err
	}
	if err := e.admit(ctx, org, cfg)(d.Rego()); err != nil {
		return compiler.OrgRego{}, err
	}
	if standing != nil && d.Holds(standing.own) {
		return standing.own, nil
	}
	return d.Parse(org)
}

// admit returns a function that returns an error unless the given Rego, by file, has compiled in a child process together with the
// entries of cfg. The error names the file, or the directory or bundle if there are several files.
func (e *Engine) admit(ctx context.Context, org string, cfg Config) bundle.Admit {
	return func(rego map[string]string) error {
		if e.deps.Isolate == nil || len(rego) == 0 {
			return nil
		}
		err := e.deps.Isolate.Compile(ctx, org, &Compilation{Entries: cfg.Policies, Rego: rego})
		if err == nil {
			return nil
		}
		f := &policyconfig.Error{
			Org: org, File: cfg.Directory.String(), Path: "rego",
			Message: "organisation " + org + ": " + err.Error(), Cause: err,
		}
		if b := cfg.Bundle; b != nil {
			f.File, f.Path = cmp.Or(b.File.String(), b.URL.String()), "bundle"
		}
		if files := slices.Collect(maps.Keys(rego)); len(files) == 1 && cfg.Bundle == nil {
			f.File = files[0]
		}
		return f
	}
}

// arrived returns the source, the new bundle and the compiled state for a bundle that is arriving at the previous engine. It returns nil if
// no bundle is arriving or if the configuration does not fit it: a configuration that names a new policy may be read before the bundle that
// contains the policy arrives.
func (e *Engine) arrived(ctx context.Context, org string, cfg Config, standing *orgState) (*bundle.Source, *bundle.Found, *orgState) {
	before := e.deps.Previous
	if before == nil || cfg.Bundle == nil {
		return nil, nil, nil
	}
	before.mu.Lock()
	found := before.arriving[org]
	before.mu.Unlock()
	if found == nil || !before.sources[org].Matches(bundle.Config(*cfg.Bundle)) {
		return nil, nil, nil
	}
	admit := e.admit(ctx, org, cfg)
	s, err := bundle.Open(org, bundle.Config(*cfg.Bundle), admit)
	if err == nil {
		err = s.Admits(found)
	}
	if err == nil {
		err = admit(found.Rego.Sources())
	}
	if err != nil {
		return nil, nil, nil
	}
	state, err := e.prepare(ctx, org, cfg, found.Rego, standing)
	if err != nil {
		return nil, nil, nil
	}
	return s, found, state
}

// dropped returns an error if the directory no longer contains policies that are in force.
func (e *Engine) dropped(org string, cfg Config, next compiler.OrgRego) error {
	if cfg.MayDrop || cfg.Directory.IsZero() {
		return nil
	}
	have := next.Policies()
	lost := slices.DeleteFunc(e.inForce(org, cfg.Directory), func(name string) bool { return slices.Contains(have, name) })
	if len(lost) == 0 {
		return nil
	}
	return &policyconfig.Error{
		Org: org, File: cfg.Directory.String(), Path: "rego",
		Message: "no longer contains policies." + strings.Join(lost, ", policies.") + "; set rego_may_drop to allow this",
	}
}

// inForce lists the organisation's own policies in force from a directory in the previous engine.
func (e *Engine) inForce(org string, directory files.Path) []string {
	before := e.deps.Previous
	if before == nil || before.configs[org].Directory != directory {
		return nil
	}
	if o := (*before.states.Load())[org]; o != nil {
		return slices.Clone(o.OwnPolicies)
	}
	return nil
}

// withoutOwn returns cfg without the entries and exceptions that only a pending bundle can resolve, so that the rest is checked
// immediately.
func withoutOwn(cfg Config) Config {
	cfg.Policies = compiler.LibraryEntries(cfg.Policies)
	cfg.Exceptions = slices.DeleteFunc(slices.Clone(cfg.Exceptions), func(x Exception) bool {
		return x.Policy != "" && !compiler.IsLibraryPolicy(x.Policy)
	})
	return cfg
}

// activate puts the compiled state of an organisation in force. The caller must hold mu.
func (e *Engine) activate(org string, o *orgState) {
	next := maps.Clone(*e.states.Load())
	next[org] = o
	e.states.Store(&next)
}

// standing returns the organisations in force in the previous engine.
func (e *Engine) standing() map[string]*orgState {
	if e.deps.Previous == nil {
		return nil
	}
	return *e.deps.Previous.states.Load()
}

// prepare compiles an organisation, unless standing (nil for none) was compiled from the same sources. Cached verdicts are kept
// only if the sources are unchanged: a mode is part of a verdict, although it is not part of the compiled form.
func (e *Engine) prepare(ctx context.Context, org string, cfg Config, mine compiler.OrgRego, standing *orgState) (*orgState, error) {
	sources, err := sourcesOf(cfg, mine, standing)
	if err != nil {
		return nil, fmt.Errorf("org %s: %w", org, err)
	}
	var next *orgState
	if standing != nil && standing.sources == sources {
		next = &orgState{Compiled: standing.Compiled, exceptions: standing.exceptions, revision: standing.revision}
	} else if next, err = e.compile(ctx, org, cfg, mine, standing); err != nil {
		return nil, err
	}
	next.section, next.sources, next.own, next.share = cfg, sources, mine, e.shares[org]
	switch {
	case e.limits.Remember == 0:
	case standing != nil && standing.sources == sources && standing.memory != nil && standing.memory.Size() == e.limits.Remember:
		next.memory = standing.memory
	default:
		next.memory = policyinput.NewCache[*Decision](e.limits.Remember)
	}
	return next, nil
}

// sourcesOf returns an identifier of everything that an organisation's policies are compiled from besides the library: the
// configuration, its own Rego, and the directory that error positions refer to. It reuses the identifier of standing if both
// configurations share their slices.
func sourcesOf(cfg Config, mine compiler.OrgRego, standing *orgState) (string, error) {
	if standing != nil && shared(cfg.Policies, standing.section.Policies) && shared(cfg.Exceptions, standing.section.Exceptions) &&
		cfg.Directory == standing.section.Directory && mine.Digest() == standing.own.Digest() {
		return standing.sources, nil
	}
	text, err := json.Marshal(struct {
		Policies   []Entry
		Exceptions []Exception
		Directory  string
		Own        string
	}{cfg.Policies, cfg.Exceptions, cfg.Directory.String(), mine.Digest()})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return string(sum[:]), nil
}

// shared reports whether two slices are the same slice, or both empty.
func shared[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// compile compiles an organisation's policies and exceptions.
func (e *Engine) compile(ctx context.Context, org string, cfg Config, mine compiler.OrgRego, standing *orgState) (*orgState, error) {
	section := compiler.Options{Org: org, Entries: cfg.Policies, Rego: mine}
	if standing != nil {
		section.KnownSource = standing.own.Digest()
	}
	c, err := compiler.Compile(ctx, &section)
	if err != nil {
		return nil, err
	}
	exceptions, err := prepareExceptions(org, cfg, c.OwnPolicies)
	if err != nil {
		return nil, err
	}
	granted, err := json.Marshal(cfg.Exceptions)
	if err != nil {
		return nil, fmt.Errorf("org %s: exceptions: %w", org, err)
	}
	sum := sha256.Sum256(append([]byte(c.Revision), granted...))
	return &orgState{Compiled: c, exceptions: exceptions, revision: hex.EncodeToString(sum[:8])}, nil
}

// Status describes the policies of one organisation.
type Status struct {
	// Org is the ID of the organisation.
	Org string
	// Revision identifies the compiled state. It is empty while the first bundle is pending.
	Revision string
	// Bundle is the revision in the manifest of the bundle, or empty without a bundle.
	Bundle string
	// Fetched is when the bundle was last confirmed to be current.
	Fetched time.Time
	// Err is the error of the last poll of the bundle. It is nil after a successful poll and without a bundle.
	Err error
}

// Status returns the status of all organisations, sorted by ID.
func (e *Engine) Status() []Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	states := *e.states.Load()
	out := make([]Status, 0, len(states))
	for _, org := range slices.Sorted(maps.Keys(states)) {
		s := Status{Org: org}
		if o := states[org]; o != nil {
			s.Revision = o.revision
		}
		if src := e.sources[org]; src != nil {
			s.Bundle, s.Fetched, s.Err = src.Status()
		}
		out = append(out, s)
	}
	return out
}
