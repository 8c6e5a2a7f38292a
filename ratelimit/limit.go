package ratelimit

import (
	"errors"
	"fmt"

	"github.com/tollgate-dev/tollgate/config/fault"
)

const (
	// MaxQuota is the largest quota of a window. Lua handles counts as decimal numbers whose default format is exact to 14 digits.
	MaxQuota = 1_000_000_000_000
	// MaxCost is the largest cost of one call.
	MaxCost = 1_000_000_000
	// MaxScopes is the largest number of scopes of one call.
	MaxScopes = 8
	// maxID is the largest length of an identifier that becomes part of a store key.
	maxID = 128
)

// Limit is the quota of a scope, per window. A zero window is not limited, and the zero Limit limits nothing.
type Limit struct {
	Minute int64 `yaml:"minute" doc:"maximum number of calls per calendar minute; 0 means no limit" unit:"calls" zero:"omit"`
	Hour   int64 `yaml:"hour" doc:"maximum number of calls per calendar hour; 0 means no limit" unit:"calls" zero:"omit"`
	Day    int64 `yaml:"day" doc:"maximum number of calls per calendar day; 0 means no limit" unit:"calls" zero:"omit"`
}

// Unlimited reports whether no window is limited.
func (l Limit) Unlimited() bool { return l == Limit{} }

// Quota returns the quota of window i, 0 if that window is not limited.
func (l Limit) Quota(i int) int64 {
	return [Windows]int64{l.Minute, l.Hour, l.Day}[i]
}

// room returns the number of units that window i may hold, for arithmetic: a very large number for an unlimited window.
func (l Limit) room(i int) int64 {
	if q := l.Quota(i); q != 0 {
		return q
	}
	return MaxQuota
}

// Validate returns an error for each quota that is negative, larger than [MaxQuota], or larger than the quota of a longer window, which
// makes it ineffective.
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
				errs = append(errs, fault.Errorf(WindowName(i), "must be at most %d, which is the quota of the %s, got %d", b, WindowName(j), a))
			}
		}
	}
	return errors.Join(errs...)
}

// Refuses returns the first window that can never hold a call of the given cost, and reports whether there is one.
func (l Limit) Refuses(cost int64) (window string, ok bool) {
	for i := range Windows {
		if cost > l.room(i) {
			return WindowName(i), true
		}
	}
	return "", false
}

// check is the part of Validate that the limiter depends on.
func (l Limit) check() error {
	for i := range Windows {
		if q := l.Quota(i); q < 0 || q > MaxQuota {
			return fmt.Errorf("quota of the %s is out of range: %d", WindowName(i), q)
		}
	}
	return nil
}

// ScopeKind is the kind of a scope.
type ScopeKind string

// Kinds of scopes. KindClass is a class of operations within another scope, for example the class runs of the key ann. Its ID must contain
// both the class and the other scope.
const (
	KindKey   ScopeKind = "key"
	KindTeam  ScopeKind = "team"
	KindOrg   ScopeKind = "org"
	KindClass ScopeKind = "class"
)

// Valid reports whether k is one of these kinds.
func (k ScopeKind) Valid() bool {
	switch k {
	case KindKey, KindTeam, KindOrg, KindClass:
		return true
	}
	return false
}

// Scope is an entity whose calls are counted, with the quota for this call.
type Scope struct {
	Kind  ScopeKind
	ID    string
	Limit Limit
	// Cost is the number of units that each unit of a call's cost takes in this scope; 0 counts as 1.
	Cost int64
	// Policy is the prefix of the scope's window names in headers, before a hyphen. Scopes without a Policy share the names minute, hour and
	// day, which describe the scope with the least room.
	Policy string
}

// units returns the number of units that a call with the given cost takes from the scope.
func (s *Scope) units(cost int64) int64 { return cost * max(1, s.Cost) }

// Ref identifies a Scope within an organisation.
type Ref struct {
	Kind ScopeKind
	ID   string
}

// Ref returns the identity of s.
func (s Scope) Ref() Ref { return Ref{Kind: s.Kind, ID: s.ID} }

// String returns kind:id, the form used in store keys and by operators.
func (r Ref) String() string { return string(r.Kind) + ":" + r.ID }

// ParseRef parses the result of [Ref.String].
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
	return Ref{}, fmt.Errorf("scope %q: must be kind:id", s)
}

// CheckID returns an error unless id can name an organisation or a scope: 1 to 128 printable ASCII characters without spaces and
// braces. Braces would move a key to another slot of a Redis Cluster, and thus to another counter.
func CheckID(id string) error {
	if id == "" {
		return errors.New("identifier is empty")
	}
	if len(id) > maxID {
		return fmt.Errorf("identifier of %d characters is longer than %d", len(id), maxID)
	}
	for i, c := range id {
		if c <= ' ' || c > '~' || c == '{' || c == '}' {
			return fmt.Errorf("identifier contains %q at position %d: only printable ASCII characters except spaces and braces are allowed", c, i)
		}
	}
	return nil
}
