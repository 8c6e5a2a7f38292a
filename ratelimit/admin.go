package ratelimit

import (
	"context"
	"fmt"
	"time"
)

// WindowState describes one window of a scope for operators.
type WindowState struct {
	Scope  Ref
	Window string
	// Limit is the quota used by the latest call, or 0 if the window is not limited.
	Limit int64
	// Used is the number of charged units, including leased permits. Remaining is the number of units left, or 0 if the window is not limited.
	Used, Remaining int64
	// Reset is the time until the window ends.
	Reset time.Duration
	// Leases holds the permits of each gateway, as of the gateway's latest request to the store.
	Leases []Lease
}

// Lease is the number of a window's permits held by one gateway.
type Lease struct {
	Gateway string
	Held    int64
}

// Show returns the windows of each scope of an organisation that has been charged today. They are sorted by the kind and ID of the scope,
// and then by length: minute, hour, day.
func (l *Limiter) Show(ctx context.Context, org string) ([]WindowState, error) {
	if err := CheckID(org); err != nil {
		return nil, fmt.Errorf("%w: organisation: %w", ErrInvalid, err)
	}
	snap, err := l.deps.Store.Snapshot(ctx, org)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	states := make([]WindowState, 0, Windows*len(snap.Scopes))
	for i := range snap.Scopes {
		for w := range Windows {
			states = append(states, windowState(&snap.Scopes[i], w, snap.Now))
		}
	}
	return states, nil
}

// EmptyWindows returns the limited windows of a scope that has not been charged today; [Limiter.Show] omits such scopes.
func EmptyWindows(ref Ref, limit Limit, now time.Time) []WindowState {
	s := ScopeState{Ref: ref, Limit: limit}
	s.State.Advance(now.UnixMilli())
	var states []WindowState
	for w := range Windows {
		if limit.Quota(w) > 0 {
			states = append(states, windowState(&s, w, now.UnixMilli()))
		}
	}
	return states
}

func windowState(s *ScopeState, w int, now int64) WindowState {
	state := WindowState{
		Scope: s.Ref, Window: WindowName(w), Limit: s.Limit.Quota(w), Used: s.State.Count[w], Reset: s.State.UntilEnd(w, now),
	}
	if state.Limit > 0 {
		state.Remaining = max(0, state.Limit-state.Used)
	}
	for _, l := range s.Leases {
		if l.Index[w] == s.State.Index[w] && l.Held[w] > 0 {
			state.Leases = append(state.Leases, Lease{Gateway: l.Gateway, Held: l.Held[w]})
		}
	}
	return state
}

// Reset sets the counts of a scope to zero. If ref is the zero Ref, it does so for all scopes of the organisation. Reset takes effect
// immediately on this gateway, and within a second on other gateways that call Run.
func (l *Limiter) Reset(ctx context.Context, org string, ref Ref) error {
	if err := CheckID(org); err != nil {
		return fmt.Errorf("%w: organisation: %w", ErrInvalid, err)
	}
	if ref != (Ref{}) {
		if _, err := ParseRef(ref.String()); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	if err := l.deps.Store.Reset(ctx, org, ref); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	l.markStale()
	return nil
}

// markStale makes l ask the store again about windows known to be full.
func (l *Limiter) markStale() {
	l.book.each(func(a *account) bool {
		a.stale = true
		return true
	})
}
