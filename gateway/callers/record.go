package callers

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// madeKey is a key made at run time. A record of one is the JSON of a [KeyRecord],
// which is read as YAML, of which it is a part.
type madeKey struct {
	settings.Key `yaml:",inline"`

	// Revision counts the changes of the key.
	Revision int64 `yaml:"revision"`
	// Created and Revoked are when that happened; Revoked is zero for a key that was
	// not. By and RevokedBy are the name of an admin, "admin", or the id of a lead's key.
	Created   time.Time `yaml:"created"`
	By        string    `yaml:"by"`
	Revoked   time.Time `yaml:"revoked"`
	RevokedBy string    `yaml:"revoked_by"`

	text  json.RawMessage // the record
	entry KeyRecord       // as it is stored
	fault string          // the fault of the key itself, "" for nothing
	use   *keyUse         // nil for a record that the store does not have
}

// parseMade reads a record.
func parseMade(entry *KeyRecord) (*madeKey, error) {
	m := &madeKey{text: *entry.Record, entry: *entry}
	if err := strictyaml.Decode("record", m.text, m); err != nil {
		return m, err
	}
	m.judge()
	return m, nil
}

// judge notes faults of the key itself.
func (m *madeKey) judge() {
	m.fault = ""
	if err := m.Validate(); err != nil {
		m.fault = err.Error()
	}
}

// reread reads a record that is most likely that of m, which may be nil.
func (m *madeKey) reread(entry *KeyRecord) (*madeKey, error) {
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

// ended reports whether the key was revoked or has expired.
func (m *madeKey) ended(now time.Time) bool {
	return !m.Revoked.IsZero() || !m.Expires.IsZero() && !m.Expires.After(now)
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

// later reports whether m is a later state of the key than other. Of two with the same
// revision, the revoked one is later.
func (m *madeKey) later(other *madeKey) bool {
	if m.Revision == other.Revision {
		return !m.Revoked.IsZero() && other.Revoked.IsZero()
	}
	return m.Revision > other.Revision
}

// record returns the record to store.
func (m *madeKey) record() settings.KeyRecord {
	r := m.Record()
	r.Revision, r.Created, r.By, r.Revoked, r.RevokedBy = m.Revision, m.Created.UTC(), m.By, m.Revoked.UTC(), m.RevokedBy
	return r
}
