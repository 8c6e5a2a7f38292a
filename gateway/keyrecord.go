package gateway

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/keystore"
	"github.com/tollgate-dev/tollgate/policies/spend"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// madeKey is a key made at run time. A record of one is the JSON of a [KeyRecord],
// which is read as YAML, of which it is a part.
type madeKey struct {
	Key `yaml:",inline"`

	// Revision counts the changes of the key.
	Revision int64 `yaml:"revision"`
	// Created and Revoked are when that happened; Revoked is zero for a key that was
	// not. By and RevokedBy are the name of an admin, "admin", or the id of a lead's key.
	Created   time.Time `yaml:"created"`
	By        string    `yaml:"by"`
	Revoked   time.Time `yaml:"revoked"`
	RevokedBy string    `yaml:"revoked_by"`

	text  json.RawMessage // the record
	entry keystore.Entry  // as it is stored
	fault string          // what is wrong with the key on its own, "" for nothing
}

// parseMade reads a record.
func parseMade(entry *keystore.Entry) (*madeKey, error) {
	m := &madeKey{text: *entry.Record, entry: *entry}
	if err := strictyaml.Decode("record", m.text, m); err != nil {
		return m, err
	}
	m.judge()
	return m, nil
}

// judge notes what is wrong with the key on its own.
func (m *madeKey) judge() {
	m.fault = ""
	if err := m.Validate(); err != nil {
		m.fault = err.Error()
	}
}

// reread reads a record that is most likely that of m, which may be nil.
func (m *madeKey) reread(entry *keystore.Entry) (*madeKey, error) {
	if m == nil || string(m.text) != string(*entry.Record) {
		return parseMade(entry)
	}
	same := *m
	same.entry = *entry
	return &same, nil
}

// recorded returns m with its record.
func (m madeKey) recorded() (madeKey, error) {
	var err error
	if m.text, err = json.Marshal(m.record()); err != nil {
		return m, fmt.Errorf("encode a key: %w", err)
	}
	m.judge()
	return m, nil
}

// count adds the digests of the key to n.
func (m *madeKey) count(n map[identity.Digest]int) {
	for _, d := range m.Secrets() {
		n[d.Digest]++
	}
}

// over reports whether the key ended so long ago that it can be forgotten.
func (m *madeKey) over(now time.Time) bool {
	for _, end := range []time.Time{m.Revoked, m.Expires} {
		if !end.IsZero() && now.Sub(end) > keyMemory {
			return true
		}
	}
	return false
}

// later reports whether m is what the key became after other. Of two that came after
// the same, the one that revokes is.
func (m *madeKey) later(other *madeKey) bool {
	if m.Revision == other.Revision {
		return !m.Revoked.IsZero() && other.Revoked.IsZero()
	}
	return m.Revision > other.Revision
}

// KeyRecord is a key as it is shown and stored, without any secret. Its members are
// those of the configuration, and what is known of a key made at run time besides.
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
	// long, and for keys of the configuration. State is "in force", "revoked", "expired", or why it is not in force. Both
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

// record is what is stored.
func (m *madeKey) record() KeyRecord {
	r := m.Record()
	r.Revision, r.Created, r.By, r.Revoked, r.RevokedBy = m.Revision, m.Created.UTC(), m.By, m.Revoked.UTC(), m.RevokedBy
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

func budgetRecord(b spend.Budget) map[string]any {
	m := make(map[string]any)
	for i, limit := range b.Limits() {
		if limit != 0 {
			m[spend.CeilingName(i)] = json.Number(spend.AmountText(i, limit))
		}
	}
	if b.Approvable {
		m["approvable"] = true
	}
	return m
}

// Rotated returns the secrets of a key that gets another one: what is accepted now ends
// with the overlap, and what has ended is left out.
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
