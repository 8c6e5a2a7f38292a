package callers

import (
	"encoding/json"
	"time"

	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// runtimeKey is a key created at run time. It is stored as the JSON of a [settings.KeyRecord], and decoded as YAML, which
// includes JSON.
type runtimeKey struct {
	settings.Key `yaml:",inline"`

	// Revision is the number of changes of the key.
	Revision int64 `yaml:"revision"`
	// Created and Revoked are the times of creation and revocation; Revoked is zero for a key that is not revoked. By and
	// RevokedBy hold the name of an admin as in the audit log, or the id of a lead's key.
	Created   time.Time `yaml:"created"`
	By        string    `yaml:"by"`
	Revoked   time.Time `yaml:"revoked"`
	RevokedBy string    `yaml:"revoked_by"`

	fault string // why the key itself is invalid, or ""
}

// UnmarshalJSON decodes a record.
func (m *runtimeKey) UnmarshalJSON(text []byte) error {
	if err := strictyaml.Decode("record", text, m); err != nil {
		return err
	}
	m.checkFault()
	return nil
}

// MarshalJSON encodes the record.
func (m *runtimeKey) MarshalJSON() ([]byte, error) { return json.Marshal(m.record()) }

// checkFault validates the key and sets fault.
func (m *runtimeKey) checkFault() {
	m.fault = ""
	if err := m.Validate(); err != nil {
		m.fault = err.Error()
	}
}

// ended reports whether the key is revoked or expired.
func (m *runtimeKey) ended(now time.Time) bool {
	return !m.Revoked.IsZero() || !m.Expires.IsZero() && !m.Expires.After(now)
}

// RecordID implements store.Replicated.
func (m *runtimeKey) RecordID() string { return m.ID }

// Ends implements store.Replicated: a key is kept for keyRetention after its revocation or expiry.
func (m *runtimeKey) Ends() time.Time {
	end := m.Revoked
	if end.IsZero() || !m.Expires.IsZero() && m.Expires.Before(end) {
		end = m.Expires
	}
	if end.IsZero() {
		return end
	}
	return end.Add(keyRetention)
}

// Later implements store.Replicated. If two states have the same revision, the revoked one is later.
func (m *runtimeKey) Later(than *runtimeKey) bool {
	if m.Revision == than.Revision {
		return !m.Revoked.IsZero() && than.Revoked.IsZero()
	}
	return m.Revision > than.Revision
}

// record returns the record to store.
func (m *runtimeKey) record() settings.KeyRecord {
	r := m.Record()
	r.Revision, r.Created, r.By, r.Revoked, r.RevokedBy = m.Revision, m.Created.UTC(), m.By, m.Revoked.UTC(), m.RevokedBy
	return r
}
