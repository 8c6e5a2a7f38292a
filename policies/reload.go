package policies

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// ErrPending is returned by Decide for an organisation whose bundle has not
// been fetched yet.
var ErrPending = errors.New("the organisation's policy bundle is not there yet")

// Reload compiles the given organisations and, if all are good, puts them in
// place of the present ones at once. Decisions under way end on the state they
// began with. After an error the present state stays.
func (e *Engine) Reload(ctx context.Context, orgs map[string]Config) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	next := &state{orgs: make(map[string]*orgState, len(orgs))}
	sources := map[string]*source{}
	var faults []error
	for _, org := range slices.Sorted(maps.Keys(orgs)) {
		cfg := orgs[org]
		s, mine, err := e.load(org, cfg)
		if err == nil && s != nil && !s.have {
			sources[org], next.orgs[org] = s, nil // pending
			_, err = compileOrg(ctx, e.lib, org, withoutOwn(e.lib, cfg), own{}, e.deps.DocURL)
		} else if err == nil {
			next.orgs[org], err = e.prepare(ctx, org, cfg, mine)
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		if s != nil {
			sources[org] = s
		}
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	e.configs, e.sources = maps.Clone(orgs), sources
	e.reloads++
	e.alone.Store(len(orgs) == 1)
	e.now.Store(next)
	select {
	case e.changed <- struct{}{}: // Run looks at the new bundles
	default:
	}
	return nil
}

// load finds an organisation's own Rego: from its directory, from the bundle
// it had already, or from what was persisted of it.
func (e *Engine) load(org string, cfg Config) (*source, own, error) {
	if faults := cfg.Bundle.validate(); len(faults) > 0 {
		f := fault.List(errors.Join(faults...))[0]
		return nil, own{}, &LoadError{Org: org, Path: f.Path, Message: f.Err.Error()}
	}
	if cfg.Bundle == nil {
		mine, err := readDirectory(org, cfg.Directory)
		return nil, mine, err
	}
	if cfg.Directory != "" {
		return nil, own{}, &LoadError{Org: org, Message: "directory and bundle cannot both be given"}
	}
	if s := e.sources[org]; s != nil && s.have && sameBundle(s.cfg, *cfg.Bundle) {
		if s.cfg.MayDrop != cfg.Bundle.MayDrop { // a look under way keeps the old one
			s = &source{cfg: *cfg.Bundle, mine: s.mine, revision: s.revision, have: true, persisted: s.persisted}
		}
		return s, s.mine, nil
	}
	s := &source{cfg: *cfg.Bundle}
	if err := s.restore(org); err != nil {
		return nil, own{}, err
	}
	return s, s.mine, nil
}

// sameBundle compares where two sections get their bundle.
func sameBundle(a, b Bundle) bool {
	var ka, kb BundleKey
	if a.Key != nil {
		ka = *a.Key
	}
	if b.Key != nil {
		kb = *b.Key
	}
	hadKeys := (a.Key == nil) == (b.Key == nil)
	a.Key, b.Key = nil, nil
	a.MayDrop, b.MayDrop = false, false
	return a == b && ka == kb && hadKeys
}

// withoutOwn leaves out the entries and exceptions that only the bundle can
// resolve, so that the rest of a pending organisation's section is checked at
// once.
func withoutOwn(lib *library, cfg Config) Config {
	cfg.Policies = slices.DeleteFunc(slices.Clone(cfg.Policies), func(p Entry) bool {
		return policyName.MatchString(p.Policy) && lib.policies[p.Policy] == nil
	})
	cfg.Exceptions = slices.DeleteFunc(slices.Clone(cfg.Exceptions), func(x Exception) bool {
		return x.Policy != "" && lib.policies[x.Policy] == nil
	})
	return cfg
}

// activate swaps an organisation in. Called with mu held.
func (e *Engine) activate(org string, o *orgState) {
	next := &state{orgs: maps.Clone(e.now.Load().orgs)}
	next.orgs[org] = o
	e.now.Store(next)
}

// prepare compiles an organisation, or takes the present state of it when
// nothing changed, so that what was remembered stays.
func (e *Engine) prepare(ctx context.Context, org string, cfg Config, mine own) (*orgState, error) {
	c, err := compileOrg(ctx, e.lib, org, cfg, mine, e.deps.DocURL)
	if err != nil {
		return nil, err
	}
	if now := e.now.Load(); now != nil && now.orgs[org] != nil && now.orgs[org].revision == c.revision {
		return now.orgs[org], nil
	}
	m, err := newMemory(e.limits.Remember, c.reads)
	if err != nil {
		return nil, fmt.Errorf("org %s: %w", org, err)
	}
	return &orgState{compiled: c, memory: m, share: e.shareOf(org)}, nil
}

// Status is how an organisation's policies are doing.
type Status struct {
	// Org is the organisation.
	Org string
	// Revision names the compiled state; "" while the bundle is awaited.
	Revision string
	// Bundle is the revision in the bundle's manifest; "" without a bundle.
	Bundle string
	// Fetched is when the bundle was last seen to be current.
	Fetched time.Time
	// Err is why the last look at the bundle failed; nil when it did not.
	Err error
}

// Status lists the organisations by name.
func (e *Engine) Status() []Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now.Load()
	out := make([]Status, 0, len(now.orgs))
	for _, org := range slices.Sorted(maps.Keys(now.orgs)) {
		s := Status{Org: org}
		if o := now.orgs[org]; o != nil {
			s.Revision = o.revision
		}
		if src := e.sources[org]; src != nil {
			s.Bundle, s.Fetched, s.Err = src.revision, src.fetched, src.lastErr
		}
		out = append(out, s)
	}
	return out
}

func (e *Engine) bundleOrgs() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.sources))
}

// nextLook is when an organisation's bundle is due.
func (e *Engine) nextLook(org string, now time.Time) (at time.Time, due bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.sources[org]
	if s == nil {
		return now.Add(idle), false
	}
	return s.next, !s.next.After(now)
}
