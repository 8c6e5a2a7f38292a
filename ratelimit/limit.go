package ratelimit

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
)

const (
	// MaxQuota is the maximum quota of a window. Redis formats counts with Lua, whose default number format is exact to 14 digits.
	MaxQuota = 1_000_000_000_000
	// MaxCost is the largest cost of one call.
	MaxCost = 1_000_000_000
	// MaxScopes is the largest number of scopes of one call.
	MaxScopes = 8
	// maxID is the largest length of an identifier that becomes part of a store key.
	maxID = 128
)

// Limit holds the quotas of a scope. A window with quota 0 is not limited.
type Limit struct {
	Minute int64 `yaml:"minute" doc:"maximum calls per calendar minute" unit:"calls" zero:"omit"`
	Hour   int64 `yaml:"hour" doc:"maximum calls per calendar hour" unit:"calls" zero:"omit"`
	Day    int64 `yaml:"day" doc:"maximum calls per calendar day" unit:"calls" zero:"omit"`
}

// Unlimited reports whether no window is limited.
func (l Limit) Unlimited() bool { return l == Limit{} }

// Quota returns the quota of window i, or 0 if the window is not limited.
func (l Limit) Quota(i int) int64 {
	return [Windows]int64{l.Minute, l.Hour, l.Day}[i]
}

// room returns the number of units that window i may hold. For a window without a limit, it returns a very large number.
func (l Limit) room(i int) int64 {
	if q := l.Quota(i); q != 0 {
		return q
	}
	return MaxQuota
}

// Validate returns an error for each quota that is negative, larger than [MaxQuota], or larger than the quota of a longer window. The
// latter would have no effect.
func (l Limit) Validate() error {
	var errs fault.Found
	for i := range Windows {
		q := l.Quota(i)
		errs.If(q < 0, WindowName(i), "must not be negative, got %d", q)
		errs.If(q > MaxQuota, WindowName(i), "must be at most %d, got %d", int64(MaxQuota), q)
	}
	for i := range Windows {
		for j := i + 1; j < Windows; j++ {
			a, b := l.Quota(i), l.Quota(j)
			errs.If(a > b && b > 0, WindowName(i), "must be at most %d, which is the quota of the %s, got %d", b, WindowName(j), a)
		}
	}
	return errors.Join(errs...)
}

// Refuses reports whether a window has a quota that is too small for any call of the given cost, and returns the name of the first such
// window.
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
			return fmt.Errorf("quota of the %s must be from 0 to %d, got %d", WindowName(i), int64(MaxQuota), q)
		}
	}
	return nil
}

// ScopeKind is the kind of a scope.
type ScopeKind string

// Kinds of scopes. KindClass is a class of operations within another scope, for example the class "runs" of the key "ann". The ID of the
// scope must contain both names.
const (
	KindKey   ScopeKind = "key"
	KindTeam  ScopeKind = "team"
	KindOrg   ScopeKind = "org"
	KindClass ScopeKind = "class"
)

// Valid reports whether k is a known kind.
func (k ScopeKind) Valid() bool {
	return k == KindKey || k == KindTeam || k == KindOrg || k == KindClass
}

// Scope is a key, a team or another entity whose calls are counted together, with its quota for the current call.
type Scope struct {
	Kind  ScopeKind
	ID    string
	Limit Limit
	// Cost is the weight of the scope: a call takes Cost times its own cost from the windows of the scope. 0 counts as 1.
	Cost int64
	// Policy is the prefix of the scope's window names in headers, before a hyphen. Scopes without a Policy share the names "minute", "hour"
	// and "day", which then describe the scope with the least room.
	Policy string
}

// Units returns the number of units that a call with the given cost takes from each window of the scope. A cost of 0 counts as 1.
func (s *Scope) Units(cost int64) int64 { return max(1, cost) * max(1, s.Cost) }

// WindowName returns the name of the scope's window w in headers.
func (s *Scope) WindowName(w int) string {
	if s.Policy == "" {
		return WindowName(w)
	}
	return s.Policy + "-" + WindowName(w)
}

// Ref identifies a Scope within an organisation.
type Ref struct {
	Kind ScopeKind
	ID   string
}

// Ref returns the identity of s.
func (s Scope) Ref() Ref { return Ref{Kind: s.Kind, ID: s.ID} }

// String returns the form kind:id, as used in store keys and by operators.
func (r Ref) String() string { return string(r.Kind) + ":" + r.ID }

// ParseRef parses the result of [Ref.String].
func ParseRef(s string) (Ref, error) {
	kind, id, ok := strings.Cut(s, ":")
	r := Ref{Kind: ScopeKind(kind), ID: id}
	if !ok {
		return Ref{}, fmt.Errorf("scope %q: must be kind:id", s)
	}
	if !r.Kind.Valid() {
		return Ref{}, fmt.Errorf("scope %q: unknown kind %q", s, r.Kind)
	}
	if err := CheckID(r.ID); err != nil {
		return Ref{}, fmt.Errorf("scope %q: %w", s, err)
	}
	return r, nil
}

// CheckID checks the ID of an organisation or a scope. A valid ID has 1 to 128 printable ASCII characters and contains no spaces or braces.
// In a Redis Cluster, braces would move the key of a scope to another slot.
func CheckID(id string) error {
	if id == "" {
		return errors.New("identifier is empty")
	}
	if len(id) > maxID {
		return fmt.Errorf("identifier must be at most %d characters, got %d", maxID, len(id))
	}
	for i, c := range id {
		if c <= ' ' || c > '~' || c == '{' || c == '}' {
			return fmt.Errorf("identifier contains %q at position %d: only printable ASCII characters except spaces and braces are allowed", c, i)
		}
	}
	return nil
}
