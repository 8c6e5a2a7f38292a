package ratelimit

import (
	"context"
	"fmt"
	"time"
)

// WindowState is one window of one scope, as operators see it.
type WindowState struct {
	Scope  Ref
	Window string
	// Limit is the quota of the latest call, 0 if the window is not limited.
	Limit int64
	// Used is the charged amount, leased permits included. Remaining is the amount left
	// to take, 0 if the window is not limited.
	Used, Remaining int64
	// Reset is the time until the window ends.
	Reset time.Duration
	// Leases are the permits gateways said they hold when they last spoke to the
	// store.
	Leases []Lease
}

// Lease holds one gateway's permits of a window.
type Lease struct {
	Gateway string
	Held    int64
}

// Snapshot returns the windows of an organisation that are counted today: for each
// scope, ordered by kind and ID, the minute, the hour and the day.
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

// EmptyWindows returns the windows that a quota limits of a scope that is not counted.
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
		Scope: s.Ref, Window: WindowName(w), Limit: s.Limit.Quota(w), Used: s.State.Count[w], Reset: s.State.Reset(w, now),
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

// Reset sets the counts of a scope to nothing, or those of the whole organisation
// if ref is the zero Ref. This gateway takes note at once, others that are run
// within a second.
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

// markStale makes l ask the store again about windows it knows to be full.
func (l *Limiter) markStale() {
	l.book.each(func(a *account) bool {
		a.stale = true
		return true
	})
}
