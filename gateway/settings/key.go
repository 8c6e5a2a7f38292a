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

// Entries appends the directory entries of the key to list.
func (k *Key) Entries(list []identity.Entry, org string) []identity.Entry {
	for _, d := range k.Accepted() {
		list = append(list, identity.Entry{Digest: d.Digest, From: d.NotBefore, Caller: identity.Caller{
			Org: org, Team: k.Team, Key: k.ID, Roles: k.Roles, Exempt: k.Exempt, Until: d.NotAfter, Addresses: k.Addresses, Used: k.Used,
		}})
	}
	return list
}

// Key is an API key of a caller.
type Key struct {
	ID        string          `yaml:"id,required" doc:"short name, unique in the organisation. Logs contain this name in place of the key"`
	Team      string          `yaml:"team" doc:"team of the caller"`
	MovedFrom string          `yaml:"moved_from" doc:"former team of the key. If set, the key's resources and the amounts accrued in the current periods move to the new team; otherwise they stay with the former team. See docs/spend.md"`
	Digest    identity.Digest `yaml:"sha256" doc:"SHA-256 of the key as 64 hexadecimal digits; required unless digests is set"`

	Digests []Digest `yaml:"digests" doc:"accepted keys with their validity periods, such as two keys during a rotation; replaces sha256"`

	Roles  []identity.Role `yaml:"roles" doc:"roles of the caller, which policies can read. If absent, the caller has the role operator. A lead can create keys for the team, see docs/keys.md"`
	Limit  ratelimit.Limit `yaml:"limits" doc:"rate limits of the key"`
	Budget ledger.Budget   `yaml:"budget" doc:"budget of the key"`

	Labels []string `yaml:"labels" doc:"labels of the organisation that the caller can set. If absent, all are permitted; [] permits none"`

	Exempt bool `yaml:"exempt" doc:"exempt the caller from rate limits, and omit RateLimit headers from responses"`

	Addresses []netip.Prefix `yaml:"addresses" doc:"networks from which the key is accepted, such as 10.0.0.0/8. If absent, the key is accepted from any address"`

	Expires time.Time `yaml:"expires" doc:"time at which the key and all its digests expire (RFC 3339). If absent, the key never expires"`

	Owner string `yaml:"owner" doc:"person responsible for the key, as free text of at most 200 bytes"`

	// Used stores the time of the last use. It is nil until the key is in force.
	Used *atomic.Int64 `yaml:"-"`
}

// Quotas returns the rate limits of the key.
func (k *Key) Quotas() ratelimit.Limit {
	if k.Exempt {
		return ratelimit.Limit{}
	}
	return k.Limit
}

// maxOwner is the maximum length of an owner in bytes.
const maxOwner = 200

// Digest is the SHA-256 digest of a secret of a key, and the period in which the secret is accepted.
type Digest struct {
	Digest    identity.Digest `yaml:"sha256,required" doc:"SHA-256 of the key as 64 hexadecimal digits"`
	NotBefore time.Time       `yaml:"not_before" doc:"start of the validity period of the key (RFC 3339). If absent, the period has no start"`
	NotAfter  time.Time       `yaml:"not_after" doc:"end of the validity period of the key (RFC 3339). If absent, the period has no end"`
}

// Secrets returns the digests of the key as configured.
func (k *Key) Secrets() []Digest {
	if len(k.Digests) > 0 {
		return k.Digests
	}
	return []Digest{{Digest: k.Digest}}
}

// Accepted returns the digests of the key, each with the period in which it is accepted.
func (k *Key) Accepted() []Digest {
	digests := slices.Clone(k.Secrets())
	for i, d := range digests {
		if !k.Expires.IsZero() && (d.NotAfter.IsZero() || d.NotAfter.After(k.Expires)) {
			digests[i].NotAfter = k.Expires
		}
	}
	return digests
}

// Validate returns the faults of the key itself.
func (k *Key) Validate() error {
	errs := fault.Found{
		fault.At("id", ratelimit.CheckID(k.ID)), fault.At("limits", k.Limit.Validate()),
		fault.At("budget", k.Budget.Validate()),
	}
	if (k.Digest == identity.Digest{}) == (len(k.Digests) == 0) {
		errs = append(errs, errors.New("must set either sha256 or digests"))
	}
	errs.If(len(k.Owner) > maxOwner || !printable(k.Owner), "owner", "must have at most %d bytes and contain only printable characters", maxOwner)
	for i, p := range k.Addresses {
		errs.If(p != p.Masked(), fault.Index("addresses", i), "has bits set beyond the prefix length: write %s as %s", p, p.Masked())
	}
	errs.If(k.Team == "" && slices.Contains(k.Roles, identity.RoleLead), "roles", "must not contain lead unless team is set")
	for i, d := range k.Digests {
		errs.If(!d.NotAfter.IsZero() && !d.NotBefore.Before(d.NotAfter), fault.Index("digests", i)+".not_after", "must be later than not_before")
	}
	return errors.Join(errs...)
}

// printable reports whether a string is safe to print on one line of a terminal.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// KeyRecord is a key as shown and stored, without its secrets. Its members are the settings of a key, and the additional data of keys
// created at run time.
type KeyRecord struct {
	ID        string           `json:"id"`
	Team      string           `json:"team,omitempty"`
	Roles     []identity.Role  `json:"roles,omitempty"`
	Owner     string           `json:"owner,omitempty"`
	Expires   time.Time        `json:"expires,omitzero"`
	Addresses []netip.Prefix   `json:"addresses,omitempty"`
	Limits    map[string]int64 `json:"limits,omitempty"`
	Budget    map[string]any   `json:"budget,omitempty"`
	Labels    []string         `json:"labels,omitzero"` // [] permits none, absent permits all
	Exempt    bool             `json:"exempt,omitempty"`
	Digests   []DigestRecord   `json:"digests,omitempty"`

	Revision  int64     `json:"revision,omitempty"`
	Created   time.Time `json:"created,omitzero"`
	By        string    `json:"by,omitempty"`
	Revoked   time.Time `json:"revoked,omitzero"`
	RevokedBy string    `json:"revoked_by,omitempty"`

	// Used is the time of the last use, accurate to a few minutes; it is zero if the key was not used recently. State is "in force",
	// "revoked", "expired", or the reason for which the key is not in force. Both are shown but not stored.
	Used  time.Time `json:"used,omitzero"`
	State string    `json:"state,omitempty"`
}

// DigestRecord is a secret of a key with the period in which it is accepted.
type DigestRecord struct {
	SHA256    string    `json:"sha256"`
	NotBefore time.Time `json:"not_before,omitzero"`
	NotAfter  time.Time `json:"not_after,omitzero"`
}

// Record returns the key as a KeyRecord.
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

// Rotated returns the digests of the key after adding next. Secrets accepted at now expire after overlap at the latest, and expired secrets
// are dropped.
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
