package settings

import (
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Entries adds those of the key to a list.
func (k *Key) Entries(list []identity.Entry, org string) []identity.Entry {
	for _, d := range k.Accepted() {
		list = append(list, identity.Entry{Digest: d.Digest, From: d.NotBefore, Caller: identity.Caller{
			Org: org, Team: k.Team, Key: k.ID, Roles: k.Roles, Exempt: k.Exempt, Until: d.NotAfter, Addresses: k.Addresses, Used: k.Used,
		}})
	}
	return list
}

// Key is one key of a caller.
type Key struct {
	ID        string          `yaml:"id,required" doc:"short name, unique in the organisation; logs show it, never the key"`
	Team      string          `yaml:"team" doc:"team the caller belongs to"`
	MovedFrom string          `yaml:"moved_from" doc:"team that the key belonged to before: the key's resources and what it has accrued in the current periods move to its team; without it, they stay with the former team. See docs/spend.md"`
	Digest    identity.Digest `yaml:"sha256" doc:"SHA-256 of the key, 64 hexadecimal digits; required without digests"`
	Digests   []Digest        `yaml:"digests" doc:"instead of sha256, the keys that are accepted for this caller and when: during a rotation the old one and the new"`
	Roles     []identity.Role `yaml:"roles" doc:"roles of the caller, for policies to read; a key that names none is an operator. A lead may make keys of its team, see docs/keys.md"`
	Limit     ratelimit.Limit `yaml:"limits" doc:"the key's own quotas"`
	Budget    ledger.Budget   `yaml:"budget" doc:"budget of the key"`
	Labels    []string        `yaml:"labels" doc:"names of those labels of the organisation that the caller may set; absent is all, [] none"`
	Exempt    bool            `yaml:"exempt" doc:"not limited, and sent no RateLimit headers"`

	Addresses []netip.Prefix `yaml:"addresses" doc:"prefixes that the key is accepted from, such as 10.0.0.0/8; none is everywhere"`
	Expires   time.Time      `yaml:"expires" doc:"when the key ceases to be accepted, whatever its digests say, RFC 3339; absent is never"`
	Owner     string         `yaml:"owner" doc:"who answers for the key, for people to read; at most 200 bytes"`

	// Used is where the last use of the key is noted, nil before it is in force.
	Used *atomic.Int64 `yaml:"-"`
}

// Quotas are those that the key is held to.
func (k *Key) Quotas() ratelimit.Limit {
	if k.Exempt {
		return ratelimit.Limit{}
	}
	return k.Limit
}

// maxOwner bounds the text of an owner, in bytes.
const maxOwner = 200

// Digest is one of the secrets of a key, with the time in which it is accepted.
type Digest struct {
	Digest    identity.Digest `yaml:"sha256,required" doc:"SHA-256 of the key, 64 hexadecimal digits"`
	NotBefore time.Time       `yaml:"not_before" doc:"when it begins to be accepted, RFC 3339; absent is always"`
	NotAfter  time.Time       `yaml:"not_after" doc:"when it ceases to be accepted, RFC 3339; absent is never"`
}

// Secrets lists the digests of a key as they are configured.
func (k *Key) Secrets() []Digest {
	if len(k.Digests) > 0 {
		return k.Digests
	}
	return []Digest{{Digest: k.Digest}}
}

// Accepted lists the digests of a key, each with the time in which it is accepted.
func (k *Key) Accepted() []Digest {
	digests := slices.Clone(k.Secrets())
	for i, d := range digests {
		if !k.Expires.IsZero() && (d.NotAfter.IsZero() || d.NotAfter.After(k.Expires)) {
			digests[i].NotAfter = k.Expires
		}
	}
	return digests
}

// Validate reports the faults of a key on its own.
func (k *Key) Validate() error {
	errs := fault.Found{fault.At("id", ratelimit.CheckID(k.ID)), fault.At("limits", k.Limit.Validate()), fault.At("budget", k.Budget.Validate())}
	if (k.Digest == identity.Digest{}) == (len(k.Digests) == 0) {
		errs = append(errs, errors.New("needs either sha256 or digests"))
	}
	errs.If(len(k.Owner) > maxOwner || !printable(k.Owner), "owner", "must be at most %d bytes of printable characters", maxOwner)
	for i, p := range k.Addresses {
		errs.If(p != p.Masked(), fault.Index("addresses", i), "has bits behind its length: %s means %s", p, p.Masked())
	}
	errs.If(k.Team == "" && slices.Contains(k.Roles, identity.RoleLead), "roles", "a lead needs a team")
	for i, d := range k.Digests {
		errs.If(!d.NotAfter.IsZero() && !d.NotBefore.Before(d.NotAfter), fault.Index("digests", i)+".not_after", "must be later than not_before")
	}
	return errors.Join(errs...)
}

// printable reports whether a string can be shown in a line of a terminal.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// KeyRecord is a key as it is shown and stored, without any secret. Its members are
// those of the configuration, and the further facts of a key made at run time.
type KeyRecord struct {
	ID        string           `json:"id"`
	Team      string           `json:"team,omitempty"`
	Roles     []identity.Role  `json:"roles,omitempty"`
	Owner     string           `json:"owner,omitempty"`
	Expires   time.Time        `json:"expires,omitzero"`
	Addresses []netip.Prefix   `json:"addresses,omitempty"`
	Limits    map[string]int64 `json:"limits,omitempty"`
	Budget    map[string]any   `json:"budget,omitempty"`
	Labels    []string         `json:"labels,omitzero"` // [] is none, absent all
	Exempt    bool             `json:"exempt,omitempty"`
	Digests   []DigestRecord   `json:"digests,omitempty"`

	Revision  int64     `json:"revision,omitempty"`
	Created   time.Time `json:"created,omitzero"`
	By        string    `json:"by,omitempty"`
	Revoked   time.Time `json:"revoked,omitzero"`
	RevokedBy string    `json:"revoked_by,omitempty"`

	// Used is when the key was last used, to a few minutes; zero for never, or not for
	// long. State is "in force", "revoked", "expired", or why it is not in force. Both
	// are shown and not stored.
	Used  time.Time `json:"used,omitzero"`
	State string    `json:"state,omitempty"`
}

// DigestRecord is a secret of a key and when it is accepted.
type DigestRecord struct {
	SHA256    string    `json:"sha256"`
	NotBefore time.Time `json:"not_before,omitzero"`
	NotAfter  time.Time `json:"not_after,omitzero"`
}

// Record returns the key as the configuration says it, in JSON.
func (k *Key) Record() KeyRecord {
	r := KeyRecord{
		ID: k.ID, Team: k.Team, Roles: k.Roles, Owner: k.Owner, Expires: k.Expires.UTC(), Addresses: k.Addresses,
		Limits: limitRecord(k.Limit), Budget: budgetRecord(k.Budget), Labels: k.Labels, Exempt: k.Exempt,
	}
	if k.Digest != (identity.Digest{}) || len(k.Digests) > 0 {
		for _, d := range k.Secrets() {
			r.Digests = append(r.Digests, DigestRecord{SHA256: d.Digest.String(), NotBefore: d.NotBefore.UTC(), NotAfter: d.NotAfter.UTC()})
		}
	}
	return r
}

func limitRecord(l ratelimit.Limit) map[string]int64 {
	m := make(map[string]int64)
	for w := range ratelimit.Windows {
		if q := l.Quota(w); q != 0 {
			m[ratelimit.WindowName(w)] = q
		}
	}
	return m
}

func budgetRecord(b ledger.Budget) map[string]any {
	m := make(map[string]any)
	for i, limit := range b.Limits() {
		if limit != 0 {
			m[ledger.CeilingName(i)] = json.Number(ledger.AmountText(i, limit))
		}
	}
	if b.Approvable {
		m["approvable"] = true
	}
	return m
}

// Rotated returns the secrets of a key that gets another one: accepted secrets end with
// the overlap, and ended secrets are left out.
func (k *Key) Rotated(next identity.Digest, now time.Time, overlap time.Duration) []Digest {
	digests := slices.DeleteFunc(slices.Clone(k.Secrets()), func(d Digest) bool { return !d.NotAfter.IsZero() && !d.NotAfter.After(now) })
	end := now.Add(overlap)
	digests = slices.DeleteFunc(digests, func(d Digest) bool { return overlap <= 0 || !d.NotBefore.Before(end) })
	for i, d := range digests {
		if d.NotAfter.IsZero() || d.NotAfter.After(end) {
			digests[i].NotAfter = end
		}
	}
	return append(digests, Digest{Digest: next})
}
