package ratelimit

import (
	"errors"
	"fmt"

	"github.com/tollgate-dev/tollgate/config/fault"
)

const (
	// MaxQuota is the largest quota of a window. Counts travel as decimal
	// numbers through Lua, whose default format is exact to 14 digits.
	MaxQuota = 1_000_000_000_000
	// MaxCost is the largest cost of one call.
	MaxCost = 1_000_000_000
	// MaxScopes is the largest number of scopes one call can be counted in.
	MaxScopes = 8
	// maxID bounds the identifiers that become part of store keys.
	maxID = 128
)

// Limit is the quota of a scope, per window. A zero window is not limited; the
// zero Limit does not limit at all.
type Limit struct {
	Minute int64 `yaml:"minute" doc:"quota of a calendar minute; 0 is no limit" unit:"calls" zero:"omit"`
	Hour   int64 `yaml:"hour" doc:"quota of a calendar hour; 0 is no limit" unit:"calls" zero:"omit"`
	Day    int64 `yaml:"day" doc:"quota of a calendar day; 0 is no limit" unit:"calls" zero:"omit"`
}

// Unlimited reports whether no window is limited.
func (l Limit) Unlimited() bool { return l == Limit{} }

// Quota returns the quota of window i, 0 if that window is not limited.
func (l Limit) Quota(i int) int64 {
	return [Windows]int64{l.Minute, l.Hour, l.Day}[i]
}

// room returns the units window i may hold, for arithmetic: an unlimited window
// still has an end, far away.
func (l Limit) room(i int) int64 {
	if q := l.Quota(i); q != 0 {
		return q
	}
	return MaxQuota
}

// Validate reports every quota that is negative, larger than [MaxQuota] or
// larger than the quota of a longer window (which would never be reached).
func (l Limit) Validate() error {
	var errs []error
	for i := range Windows {
		switch q := l.Quota(i); {
		case q < 0:
			errs = append(errs, fault.Errorf(WindowName(i), "must not be negative, got %d", q))
		case q > MaxQuota:
			errs = append(errs, fault.Errorf(WindowName(i), "must be at most %d, got %d", int64(MaxQuota), q))
		}
	}
	for i := range Windows {
		for j := i + 1; j < Windows; j++ {
			if a, b := l.Quota(i), l.Quota(j); a > b && b > 0 {
				errs = append(errs, fault.Errorf(WindowName(i), "%d is more than the whole %s may hold (%d)", a, WindowName(j), b))
			}
		}
	}
	return errors.Join(errs...)
}

// Refuses returns the first window that could never hold a call of a cost, and
// whether there is one.
func (l Limit) Refuses(cost int64) (window string, ok bool) {
	for i := range Windows {
		if cost > l.room(i) {
			return WindowName(i), true
		}
	}
	return "", false
}

// check is the part of Validate the limiter itself depends on.
func (l Limit) check() error {
	for i := range Windows {
		if q := l.Quota(i); q < 0 || q > MaxQuota {
			return fmt.Errorf("quota %d of the %s is out of range", q, WindowName(i))
		}
	}
	return nil
}

// ScopeKind is the kind of a scope's subject.
type ScopeKind string

// The kinds of scope. KindClass is for a class of operations inside one of the
// others, for example the run submissions of one key to one endpoint; its ID
// must name both.
const (
	KindKey   ScopeKind = "key"
	KindTeam  ScopeKind = "team"
	KindOrg   ScopeKind = "org"
	KindClass ScopeKind = "class"
)

// Valid reports whether k is one of the kinds above.
func (k ScopeKind) Valid() bool {
	switch k {
	case KindKey, KindTeam, KindOrg, KindClass:
		return true
	}
	return false
}

// Scope is one thing calls are counted for, with the quota that holds for this
// call.
type Scope struct {
	Kind  ScopeKind
	ID    string
	Limit Limit
	// Cost is how many units each unit of a call takes here; 0 is one.
	Cost int64
	// Policy begins the names of its windows in headers. Scopes without one share
	// the names minute, hour and day, which tell of the one with the least room.
	Policy string
}

// units returns the units that a call of a cost takes from the scope.
func (s *Scope) units(cost int64) int64 { return cost * max(1, s.Cost) }

// Ref is a Scope without its quota: its identity within an organisation.
type Ref struct {
	Kind ScopeKind
	ID   string
}

// Ref returns the identity of s.
func (s Scope) Ref() Ref { return Ref{Kind: s.Kind, ID: s.ID} }

// String returns kind:id, the form store keys and operators use.
func (r Ref) String() string { return string(r.Kind) + ":" + r.ID }

// ParseRef reads a text of [Ref.String].
func ParseRef(s string) (Ref, error) {
	for i := range len(s) {
		if s[i] != ':' {
			continue
		}
		r := Ref{Kind: ScopeKind(s[:i]), ID: s[i+1:]}
		if !r.Kind.Valid() {
			return Ref{}, fmt.Errorf("scope %q: unknown kind %q", s, r.Kind)
		}
		if err := CheckID(r.ID); err != nil {
			return Ref{}, fmt.Errorf("scope %q: %w", s, err)
		}
		return r, nil
	}
	return Ref{}, fmt.Errorf("scope %q: want kind:id", s)
}

// CheckID reports whether id can name an organisation or a scope: 1 to 128
// printable ASCII characters without space and braces. Braces would move a key
// to another slot of a Redis Cluster, and with it to another counter.
func CheckID(id string) error {
	if id == "" {
		return errors.New("empty identifier")
	}
	if len(id) > maxID {
		return fmt.Errorf("identifier of %d characters is longer than %d", len(id), maxID)
	}
	for i, c := range id {
		if c <= ' ' || c > '~' || c == '{' || c == '}' {
			return fmt.Errorf("identifier has character %q at %d: must have printable ASCII characters alone, without spaces and braces", c, i)
		}
	}
	return nil
}
