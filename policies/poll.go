package policies

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tollgate-dev/tollgate/config/panics"
	"github.com/tollgate-dev/tollgate/policies/bundle"
)

// Run polls the bundles of all organisations until ctx ends, and returns context.Cause(ctx). If a bundle cannot be fetched, verified or
// compiled, the current policies stay in force, and Status returns the error. Consecutive failures with the same error are logged once.
func (e *Engine) Run(ctx context.Context) error {
	for {
		timer := time.NewTimer(e.due(ctx))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

const (
	// idle is the time Run waits if no organisation has a bundle.
	idle = time.Hour
	// polls is the number of bundles polled in parallel.
	polls = 4
)

// due polls every bundle that is due and returns the time until the next one is.
func (e *Engine) due(ctx context.Context) time.Duration {
	now := time.Now()
	var looks errgroup.Group
	looks.SetLimit(polls)
	for org, s := range e.sources {
		if !s.Next().After(now) {
			looks.Go(func() error { return panics.Catch(func() { e.poll(ctx, org, s) }) })
		}
	}
	panics.Raise(looks.Wait()) // the functions never return an error
	wait := idle
	now = time.Now()
	for _, s := range e.sources {
		wait = min(wait, max(s.Next().Sub(now), time.Millisecond))
	}
	return wait
}

// poll polls one bundle and logs every new error and the first success after errors.
func (e *Engine) poll(ctx context.Context, org string, s *bundle.Source) {
	before, after := e.fetch(ctx, org, s)
	switch {
	case sameFault(before, after), ctx.Err() != nil:
	case after != nil:
		e.deps.Logger.LogAttrs(ctx, slog.LevelError, "policy bundle rejected; the last valid one, if any, stays in force",
			slog.String("org", org), slog.String("fault", after.Error()))
	default:
		e.deps.Logger.LogAttrs(ctx, slog.LevelInfo, "policy bundle loaded after earlier failures", slog.String("org", org))
	}
}

// fetch fetches one bundle and activates it if it is new and valid. It returns the errors of the previous poll and of this poll.
func (e *Engine) fetch(ctx context.Context, org string, s *bundle.Source) (before, after error) {
	cfg, standing := e.configs[org], (*e.states.Load())[org]
	found, err := s.Poll(ctx, e.admit(ctx, org, cfg))
	if found != nil && found.New && found.Rego.Digest() != "" && e.offered(ctx, org, found) {
		return nil, nil
	}
	var next *orgState
	if err == nil && found.New {
		// No lock is held here.
		next, err = e.prepare(ctx, org, cfg, found.Rego, standing)
	}

	e.mu.Lock()
	defer e.mu.Unlock()
	if next != nil {
		e.activate(org, next)
	}
	before, after, sent := s.FinishPoll(found, err, time.Now())
	if sent && e.deps.OnChange != nil {
		e.deps.OnChange()
	}
	return before, after
}

// offered passes a new bundle to Deps.OnNewBundle and reports whether another engine replaced e.
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

// sameFault reports whether two polls failed with the same error, or both succeeded. It ignores port numbers, because network errors
// contain the port numbers of their connections.
func sameFault(before, after error) bool {
	text := func(err error) string {
		if op, ok := errors.AsType[*net.OpError](err); ok {
			return fmt.Sprint(op.Op, op.Err)
		}
		return fmt.Sprint(err)
	}
	return text(before) == text(after)
}
