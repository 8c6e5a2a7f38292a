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

// Entries appends an entry for each accepted secret of the key to list, for use in an identity.Directory. It returns the extended list.
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
	ID        string          `yaml:"id,required" doc:"short name, unique in the organisation and shown in logs in place of the key"`
	Team      string          `yaml:"team" doc:"team of the caller"`
	MovedFrom string          `yaml:"moved_from" doc:"former team of the key. The key's resources and the amounts accrued in the current periods move to the new team. If empty, both stay with the former team. See docs/spend.md"`
	Digest    identity.Digest `yaml:"sha256" doc:"SHA-256 of the key as 64 hexadecimal digits; required unless digests is set"`

	Digests []Digest `yaml:"digests" doc:"accepted keys with validity periods, such as during a rotation; replaces sha256"`

	Roles  []identity.Role `yaml:"roles" doc:"roles of the caller; default operator. A lead can create keys for the team, see docs/keys.md"`
	Limit  ratelimit.Limit `yaml:"limits" doc:"rate limits of the key"`
	Budget ledger.Budget   `yaml:"budget" doc:"budget of the key"`

	Labels []string `yaml:"labels" doc:"labels that the caller can set; default all, [] means none"`

	Exempt bool `yaml:"exempt" doc:"exempt the caller from rate limits, without RateLimit headers in responses"`

	Addresses []netip.Prefix `yaml:"addresses" doc:"networks that may use the key, such as 10.0.0.0/8; default any address"`

	Expires time.Time `yaml:"expires" doc:"expiry time of the key (RFC 3339); default never"`

	Owner string `yaml:"owner" doc:"person responsible for the key, at most 200 bytes"`

	// Used stores the time when the key was last used. It is nil until the key is in force.
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

// Digest holds the SHA-256 digest of a secret, and the period in which the secret is accepted.
type Digest struct {
	Digest    identity.Digest `yaml:"sha256,required" doc:"SHA-256 of the key as 64 hexadecimal digits"`
	NotBefore time.Time       `yaml:"not_before" doc:"start of the validity period (RFC 3339); default no start"`
	NotAfter  time.Time       `yaml:"not_after" doc:"end of the validity period (RFC 3339); default no end"`
}

// Secrets returns the digests of the key's secrets as configured.
func (k *Key) Secrets() []Digest {
	if len(k.Digests) > 0 {
		return k.Digests
	}
	return []Digest{{Digest: k.Digest}}
}

// Accepted returns the digests of the key's secrets. The period of each digest ends with the expiry of the key at the latest.
func (k *Key) Accepted() []Digest {
	digests := slices.Clone(k.Secrets())
	for i, d := range digests {
		if !k.Expires.IsZero() && (d.NotAfter.IsZero() || d.NotAfter.After(k.Expires)) {
			digests[i].NotAfter = k.Expires
		}
	}
	return digests
}

// Validate returns all faults of the key, joined. It does not check references to other settings.
func (k *Key) Validate() error {
	errs := fault.Found{
		fault.At("id", ratelimit.CheckID(k.ID)), fault.At("limits", k.Limit.Validate()),
		fault.At("budget", k.Budget.Validate()),
	}
	errs.If((k.Digest == identity.Digest{}) == (len(k.Digests) == 0), "", "must set either sha256 or digests")
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

// KeyRecord is the JSON form of a key that is shown and stored. It contains the settings of the key and, for a key created at run time,
// additional data. It never contains a secret.
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

	// Used is the time of the last use, accurate to a few minutes. It is zero if the key was not used recently. State is "in force",
	// "revoked", "expired", or the reason why the key is not in force. Both are shown but not stored.
	Used  time.Time `json:"used,omitzero"`
	State string    `json:"state,omitempty"`
}

// DigestRecord is the JSON form of a [Digest].
type DigestRecord struct {
	SHA256    string    `json:"sha256"`
	NotBefore time.Time `json:"not_before,omitzero"`
	NotAfter  time.Time `json:"not_after,omitzero"`
}

// Record converts the key to a KeyRecord.
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

// Rotated returns the digests of the key after a rotation to the digest next. The period of overlap begins at now. Rotated drops digests
// that are not accepted during this period, and makes all other previous digests expire at the end of the period at the latest.
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
