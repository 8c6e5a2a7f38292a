package ratelimit

import (
	"errors"
	"fmt"
	"time"
)

// Class tells which failure policy holds for a call.
type Class string

// The classes. The zero Class is treated as [ClassWrite], the stricter one.
const (
	ClassRead  Class = "read"
	ClassWrite Class = "write"
)

// Take is a call that wants to be counted.
type Take struct {
	// Org is the organisation all scopes belong to. Everything of one
	// organisation lives in one slot of a Redis Cluster.
	Org string
	// Scopes are the scopes the call must fit, at most MaxScopes, none twice.
	// Unlimited ones are passed over; without any limited one the call is
	// exempt: admitted without being counted.
	Scopes []Scope
	// Cost is the number of units the call takes from every window. Zero counts
	// as one; negative is an error.
	Cost int64
	// Class selects the failure policy.
	Class Class
	// Failure overrides the failure policy of the class, for an organisation
	// that has its own; empty means the configured one.
	Failure Failure
}

func (t *Take) check() error {
	if err := CheckID(t.Org); err != nil {
		return fmt.Errorf("organisation: %w", err)
	}
	if t.Cost < 0 || t.Cost > MaxCost {
		return fmt.Errorf("cost %d is out of range", t.Cost)
	}
	if len(t.Scopes) > MaxScopes {
		return fmt.Errorf("%d scopes are more than %d", len(t.Scopes), MaxScopes)
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

// Source tells where a decision was made.
type Source string

// The sources of a decision.
const (
	// SourceNone: there was nothing to count; the caller is exempt.
	SourceNone Source = "none"
	// SourceRedis: the shared store counted this call.
	SourceRedis Source = "redis"
	// SourceLease: a permit this gateway had leased was spent.
	SourceLease Source = "lease"
	// SourceMemory: refused without asking, the window being known to be full.
	SourceMemory Source = "memory"
	// SourceLocal: the store was away; this gateway's share was counted.
	SourceLocal Source = "local"
	// SourceOpen: the store was away; the call passed uncounted.
	SourceOpen Source = "open"
)

// Decision is the answer to a Take. The zero Decision refuses.
type Decision struct {
	Allowed bool
	Source  Source
	// Degraded is set when the store could not be asked and a failure policy
	// decided instead.
	Degraded bool
	// Windows describes, for each limited window, the scope with the least room
	// left after this decision, in the order minute, hour, day, and then the windows
	// of scopes that have a Policy. Empty for exempt callers and open decisions.
	Windows []Window
	// Violated lists every window the call did not fit; empty if Allowed.
	Violated []Violation
	// RetryAfter is the time until every violated window has ended, or permits of
	// it that other gateways hold may have come back; zero if Allowed.
	RetryAfter time.Duration
}

// Window is one window as a caller may see it.
type Window struct {
	Name      string
	Limit     int64
	Remaining int64
	// Size is the length of the window, Reset the time until it ends.
	Size, Reset time.Duration
}

// Violation is a window a refused call did not fit.
type Violation struct {
	Scope  Ref
	Window string
	Limit  int64
	Reset  time.Duration
}

// ErrUnavailable means that no decision could be made: the store was not
// reachable in time and the failure policy of the class is closed. The caller
// should answer 503.
var ErrUnavailable = errors.New("ratelimit: store unavailable")

// ErrInvalid means that a Take could not be counted as it was asked for; it is
// a fault of the calling code, not of the store.
var ErrInvalid = errors.New("ratelimit: invalid request")

// view is one scope as a decision describes it.
type view struct {
	// known tells which windows the rest is valid for.
	known [Windows]bool
	// count is charged and cannot be spent any more.
	count [Windows]int64
	reset [Windows]time.Duration
	// back is how long permits of other gateways may take to come back, 0 if there
	// are none.
	back [Windows]time.Duration
}

// viewOf is a scope as the store told it, at now (Unix milliseconds).
func viewOf(s *State, now int64) view {
	v := view{count: s.Count}
	for w := range Windows {
		v.known[w], v.reset[w] = true, s.Reset(w, now)
	}
	return v
}

// decide describes a decision on a call by views that hold after it, one per scope.
// A refused call violates the windows it does not fit. The scopes are those of the
// call, with the quotas it was held against.
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
			room, units := scopes[s].Limit.room(w), scopes[s].units(cost)
			if !views[s].known[w] || views[s].count[w]+units <= room {
				continue
			}
			v := Violation{
				Scope:  scopes[s].Ref(),
				Window: WindowName(w),
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

// appendWindows appends the limited windows that are known of a scope with a policy.
func appendWindows(windows []Window, s *Scope, v *view) []Window {
	for w := range Windows {
		if limit := s.Limit.Quota(w); limit != 0 && v.known[w] {
			windows = append(windows, Window{
				Name: s.Policy + "-" + WindowName(w), Limit: limit, Remaining: max(0, limit-v.count[w]), Size: WindowSize(w), Reset: v.reset[w],
			})
		}
	}
	return windows
}

// tightest describes window w of the scope with the least room left, of those
// without a policy of their own; ties go to the smaller quota, then to the scope
// named first.
func tightest(scopes []Scope, views []view, w int) (Window, bool) {
	best, found := Window{}, false
	for s := range scopes {
		limit := scopes[s].Limit.Quota(w)
		if scopes[s].Policy != "" || limit == 0 || !views[s].known[w] {
			continue
		}
		left := max(0, limit-views[s].count[w])
		if found && (left > best.Remaining || left == best.Remaining && limit >= best.Limit) {
			continue
		}
		found = true
		best = Window{
			Name: WindowName(w), Limit: limit, Remaining: left,
			Size: WindowSize(w), Reset: views[s].reset[w],
		}
	}
	return best, found
}
