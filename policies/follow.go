package policies

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tollgate-dev/tollgate/config/panics"
	"github.com/tollgate-dev/tollgate/policies/bundle"
)

// Run follows the bundles of all organisations until the context ends; its
// error is the context's cause. A bundle that cannot be fetched, verified or
// compiled changes nothing and is seen in Status; of several in a row with the same
// fault, the first is logged.
func (e *Engine) Run(ctx context.Context) error {
	for {
		timer := time.NewTimer(e.due(ctx))
		select {
		case <-timer.C:
		case <-e.changed:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

const (
	// idle is how long Run waits when there is nothing to follow.
	idle = time.Hour
	// polls is how many bundles are looked at in parallel.
	polls = 4
)

// due looks at every bundle that is due and returns how long it is until the next is.
func (e *Engine) due(ctx context.Context) time.Duration {
	now := e.deps.Now()
	var looks errgroup.Group
	looks.SetLimit(polls)
	for org, s := range e.bundles() {
		if !s.Next().After(now) {
			looks.Go(func() error { return panics.Catch(func() { e.poll(ctx, org, s) }) })
		}
	}
	panics.Raise(looks.Wait()) // a look returns no other error
	wait := idle
	now = e.deps.Now()
	for _, s := range e.bundles() {
		wait = min(wait, max(s.Next().Sub(now), time.Millisecond))
	}
	return wait
}

func (e *Engine) bundles() map[string]*bundle.Source {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.sources)
}

// poll looks at one bundle, and logs each new fault and the end of the last one.
func (e *Engine) poll(ctx context.Context, org string, s *bundle.Source) {
	before, after := e.look(ctx, org, s)
	switch {
	case sameFault(before, after), ctx.Err() != nil:
	case after != nil:
		e.deps.Logger.LogAttrs(ctx, slog.LevelError, "policy bundle not taken, the last good one stays",
			slog.String("org", org), slog.String("fault", after.Error()))
	default:
		e.deps.Logger.LogAttrs(ctx, slog.LevelInfo, "policy bundle taken again", slog.String("org", org))
	}
}

// look looks at one bundle and activates it if it is new and good. It returns
// how the look before went, and this one.
func (e *Engine) look(ctx context.Context, org string, s *bundle.Source) (before, after error) {
	e.mu.Lock()
	section, reloads, standing := e.configs[org], e.reloads, e.now.Load().orgs[org]
	e.mu.Unlock()

	found, err := s.Look(ctx, e.admit(ctx, org, section))
	if found != nil && found.New && found.Rego.Digest() != "" && e.offered(ctx, org, found) {
		return nil, nil
	}
	var next *orgState
	if err == nil && found.New {
		// Nothing is locked meanwhile.
		next, err = e.prepare(ctx, org, section, found.Rego, standing)
	}

	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sources[org] != s || e.reloads != reloads { // reloaded meanwhile
		return nil, nil
	}
	if next != nil {
		e.activate(org, next)
	}
	before, after, sent := s.Took(found, err, e.deps.Now())
	if sent && e.deps.OnChange != nil {
		e.deps.OnChange()
	}
	return before, after
}

// offered offers a new bundle to an engine with another configuration, and reports whether one took the place of e.
func (e *Engine) offered(ctx context.Context, org string, found *bundle.Found) bool {
	if e.deps.OnNewBundle == nil {
		return false
	}
	e.mu.Lock()
	e.arriving[org] = found
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.arriving, org)
	}()
	return e.deps.OnNewBundle(ctx)
}

// sameFault reports whether two looks failed for the same reason, or both did not fail. Network errors have the ports of their connections in
// their texts, and are compared without them.
func sameFault(before, after error) bool {
	text := func(err error) string {
		if op, ok := errors.AsType[*net.OpError](err); ok {
			return fmt.Sprint(op.Op, op.Err)
		}
		return fmt.Sprint(err)
	}
	return text(before) == text(after)
}
