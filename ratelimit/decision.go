package ratelimit

import (
	"errors"
	"fmt"
	"time"
)

// Class selects the failure policy of a call. It is unrelated to KindClass.
type Class string

// Classes of calls. The zero Class is treated as [ClassWrite].
const (
	ClassRead  Class = "read"
	ClassWrite Class = "write"
)

// Take is a request to count one call.
type Take struct {
	// Org is the organisation that all scopes belong to.
	Org string
	// Scopes are the scopes that count the call: at most MaxScopes, without duplicates. Scopes without a limit are ignored. If no scope has a
	// limit, the call is exempt: it is admitted and not counted.
	Scopes []Scope
	// Cost is the number of units that the call takes from every window. Zero counts as one; a negative cost is an error.
	Cost int64
	// Class selects the failure policy.
	Class Class
	// Failure, if not empty, replaces the configured failure policy of the class.
	Failure Failure
}

func (t *Take) check() error {
	if err := CheckID(t.Org); err != nil {
		return fmt.Errorf("organisation: %w", err)
	}
	if t.Cost < 0 || t.Cost > MaxCost {
		return fmt.Errorf("cost must be from 0 to %d, got %d", MaxCost, t.Cost)
	}
	if len(t.Scopes) > MaxScopes {
		return fmt.Errorf("number of scopes must be at most %d, got %d", MaxScopes, len(t.Scopes))
	}
	for i := range t.Scopes {
		s := &t.Scopes[i]
		if !s.Kind.Valid() {
			return fmt.Errorf("scope %d: unknown kind %q", i, s.Kind)
		}
		if err := CheckID(s.ID); err != nil {
			return fmt.Errorf("scope %d: %w", i, err)
		}
		if err := s.Limit.check(); err != nil {
			return fmt.Errorf("scope %d: %w", i, err)
		}
		for j := range i {
			if t.Scopes[j].ID == s.ID && t.Scopes[j].Kind == s.Kind {
				return fmt.Errorf("scope %d: %s appears twice", i, s.Ref())
			}
		}
	}
	return nil
}

// Source is the place where a decision was made.
type Source string

// Sources of decisions.
const (
	// SourceNone means that the call was exempt: none of its scopes has a limit.
	SourceNone Source = "none"
	// SourceRedis means that the shared store counted the call.
	SourceRedis Source = "redis"
	// SourceLease means that a permit leased by this gateway was spent.
	SourceLease Source = "lease"
	// SourceMemory means that the call was refused without asking the store, because a window is known to be full.
	SourceMemory Source = "memory"
	// SourceLocal means that the store was down and the call was counted against this gateway's share ([FailLocal]).
	SourceLocal Source = "local"
	// SourceOpen means that the store was down and the call passed without being counted ([FailOpen]).
	SourceOpen Source = "open"
)

// Decision is the result of a Take. The zero Decision is a refusal.
type Decision struct {
	Allowed bool
	Source  Source
	// Degraded is set if the store was unavailable and a failure policy decided instead.
	Degraded bool
	// Windows lists the limited windows in the order minute, hour, day. Each entry describes the scope that has the least room left in the
	// window. The windows of scopes with a Policy follow, with names such as "runs-minute". Windows is empty for exempt calls and for
	// decisions of FailOpen.
	Windows []Window
	// Violated lists the windows without room for the call. It is empty if Allowed.
	Violated []Violation
	// RetryAfter is the time until every violated window has ended, or until other gateways may have returned permits for it. It is zero if
	// Allowed.
	RetryAfter time.Duration
}

// Window is the state of one window as reported to a caller.
type Window struct {
	Name      string
	Limit     int64
	Remaining int64
	// Size is the length of the window, and Reset the time until it ends.
	Size, Reset time.Duration
}

// Violation is a window without room for a refused call.
type Violation struct {
	Scope  Ref
	Window string
	// Name is the name of the window in headers, such as "creates-hour".
	Name  string
	Limit int64
	Reset time.Duration
}

// ErrUnavailable means that the call could not be decided: the store did not respond in time, and the failure policy is FailClosed, or
// FailLocal when this gateway has no share left to give. The caller should respond with 503.
var ErrUnavailable = errors.New("ratelimit: store unavailable")

// ErrInvalid means that a Take is malformed. It is an error of the calling code, not of the store.
var ErrInvalid = errors.New("ratelimit: invalid request")

// view is the part of a scope's state that a decision is made from.
type view struct {
	// known reports whether the other fields are valid, by window.
	known [Windows]bool
	// count is the number of units charged and no longer available.
	count [Windows]int64
	reset [Windows]time.Duration
	// back is the longest time until other gateways return their permits, or 0 if they hold none.
	back [Windows]time.Duration
}

// viewOf returns the view of a state reported by the store, at now in Unix milliseconds.
func viewOf(s *State, now int64) view {
	v := view{count: s.Count}
	for w := range Windows {
		v.known[w], v.reset[w] = true, s.UntilEnd(w, now)
	}
	return v
}

// decide builds a decision from views, one per scope, that include the call. A refused call violates the windows without room for it.
// scopes holds the scopes of the call with the quotas that were applied.
func (c *call) decide(scopes []Scope, views []view, allowed bool, source Source) Decision {
	cost := c.cost
	d := Decision{Allowed: allowed, Source: source, Windows: make([]Window, 0, Windows)}
	for w := range Windows {
		if window, ok := tightest(scopes, views, w); ok {
			d.Windows = append(d.Windows, window)
		}
	}
	for s := range scopes {
		if scopes[s].Policy != "" {
			d.Windows = appendWindows(d.Windows, &scopes[s], &views[s])
		}
	}
	if allowed {
		return d
	}
	for s := range scopes {
		for w := range Windows {
			room, units := scopes[s].Limit.room(w), scopes[s].Units(cost)
			if !views[s].known[w] || views[s].count[w]+units <= room {
				continue
			}
			v := Violation{
				Scope:  scopes[s].Ref(),
				Window: WindowName(w),
				Name:   scopes[s].WindowName(w),
				Limit:  scopes[s].Limit.Quota(w),
				Reset:  views[s].reset[w],
			}
			d.Violated = append(d.Violated, v)
			wait := v.Reset
			if back := views[s].back[w]; back > 0 {
				wait = min(wait, back)
			}
			d.RetryAfter = max(d.RetryAfter, wait)
		}
	}
	return d
}

// appendWindows appends the known, limited windows of a scope with a policy.
func appendWindows(windows []Window, s *Scope, v *view) []Window {
	for w := range Windows {
		if s.Limit.Quota(w) != 0 && v.known[w] {
			windows = append(windows, s.window(v, w))
		}
	}
	return windows
}

// window describes window w of the scope.
func (s *Scope) window(v *view, w int) Window {
	limit := s.Limit.Quota(w)
	return Window{Name: s.WindowName(w), Limit: limit, Remaining: max(0, limit-v.count[w]), Size: WindowSize(w), Reset: v.reset[w]}
}

// tightest describes window w of the scope with the least room. It ignores scopes with a Policy. Among scopes with the same room, it
// prefers the smaller quota, and then the first scope.
func tightest(scopes []Scope, views []view, w int) (best Window, found bool) {
	for s := range scopes {
		if scopes[s].Policy != "" || scopes[s].Limit.Quota(w) == 0 || !views[s].known[w] {
			continue
		}
		window := scopes[s].window(&views[s], w)
		if found && (window.Remaining > best.Remaining || window.Remaining == best.Remaining && window.Limit >= best.Limit) {
			continue
		}
		best, found = window, true
	}
	return best, found
}
