package identity

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
)

// Digest is the SHA-256 of a key.
type Digest [sha256.Size]byte

// DigestOf returns the digest of a key as callers send it.
func DigestOf(key string) Digest { return sha256.Sum256([]byte(key)) }

// ParseDigest reads the 64 hexadecimal digits a configuration holds.
func ParseDigest(s string) (Digest, error) {
	var d Digest
	if len(s) != hex.EncodedLen(len(d)) {
		return d, fmt.Errorf("want %d hexadecimal digits, got %d characters", hex.EncodedLen(len(d)), len(s))
	}
	if _, err := hex.Decode(d[:], []byte(s)); err != nil {
		return d, errors.New("want hexadecimal digits only")
	}
	return d, nil
}

// UnmarshalText is ParseDigest.
func (d *Digest) UnmarshalText(text []byte) error {
	var err error
	*d, err = ParseDigest(string(text))
	return err
}

// String returns the digest as 64 lower-case hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Role is what a caller may be beyond a member of its team.
type Role string

// The roles the gateway knows. Policies read them.
const (
	RoleViewer   Role = "viewer"
	RoleOperator Role = "operator"
	RoleAdmin    Role = "admin"
)

// Values lists the roles a configuration may name.
func (Role) Values() []string {
	return []string{string(RoleViewer), string(RoleOperator), string(RoleAdmin)}
}

// Caller is who makes a request: no secret, safe to log. It is shared between
// requests and must not be changed.
type Caller struct {
	// Org, Team and Key are the ids of the configuration.
	Org, Team, Key string
	// Roles are those of the configuration; see RoleNames.
	Roles []Role
	// Exempt callers are not limited and get no RateLimit headers.
	Exempt bool

	digest Digest // of the key it came with, zero for callers without one
}

// RoleNames returns the roles as strings. A caller that none was named for is an
// operator.
func (c *Caller) RoleNames() []string {
	if len(c.Roles) == 0 {
		return []string{string(RoleOperator)}
	}
	out := make([]string, len(c.Roles))
	for i, r := range c.Roles {
		out[i] = string(r)
	}
	return out
}

// ErrUnknown is returned for every credential that is not a known key,
// whatever is wrong with it.
var ErrUnknown = errors.New("identity: unknown key")

// Directory finds callers by key. It is immutable and safe for concurrent use.
type Directory struct {
	byDigest map[Digest]entry
}

type entry struct {
	digest Digest
	caller *Caller
}

// Entry is one key of a Directory.
type Entry struct {
	Digest Digest
	Caller Caller
}

// NewDirectory returns a Directory of the entries. Two entries with the same
// digest are an error: one key must mean one caller.
func NewDirectory(entries []Entry) (*Directory, error) {
	d := &Directory{byDigest: make(map[Digest]entry, len(entries))}
	for _, e := range entries {
		if first, ok := d.byDigest[e.Digest]; ok {
			return nil, fmt.Errorf("keys %q and %q are the same key", first.caller.Key, e.Caller.Key)
		}
		caller := e.Caller
		caller.digest = e.Digest
		d.byDigest[e.Digest] = entry{digest: e.Digest, caller: &caller}
	}
	return d, nil
}

// Bounds of a key as callers send it; anything else cannot be one.
const (
	minKey = 8
	maxKey = 256
)

// Find returns the caller a key belongs to, or ErrUnknown. The look-up is by
// digest, so neither its result nor its time tells how close a guess came.
func (d *Directory) Find(key string) (*Caller, error) {
	if !wellFormed(key) {
		return nil, ErrUnknown
	}
	digest := DigestOf(key)
	e := d.byDigest[digest]
	if subtle.ConstantTimeCompare(e.digest[:], digest[:]) != 1 || e.caller == nil {
		return nil, ErrUnknown
	}
	return e.caller, nil
}

// Holds reports whether a caller found in this or another Directory is here too:
// the same key, with the same organisation, team, id and roles.
func (d *Directory) Holds(c *Caller) bool {
	now := d.byDigest[c.digest].caller
	return now != nil && now.Org == c.Org && now.Team == c.Team && now.Key == c.Key && slices.Equal(now.Roles, c.Roles)
}

// wellFormed accepts the token68 alphabet of RFC 9110, section 11.2, within
// the bounds of a key.
func wellFormed(key string) bool {
	if len(key) < minKey || len(key) > maxKey {
		return false
	}
	for i := range len(key) {
		c := key[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '-', c == '.', c == '_', c == '~', c == '+', c == '/', c == '=':
		default:
			return false
		}
	}
	return true
}
