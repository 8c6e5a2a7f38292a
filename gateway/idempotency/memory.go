package idempotency

import (
	"strconv"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

const (
	// maxRemembered is the number of ended intents that a gateway remembers.
	maxRemembered = 10_000
	// maxTextBytes limits the total size of remembered responses, in bytes.
	maxTextBytes = 16 << 20
)

// memory contains the intents of this gateway and their latest states, so that they can be restored if the store loses them.
type memory struct {
	now func() time.Time

	mu   sync.Mutex // guards the fields below
	orgs map[string]map[string]*remembered
	// ended lists ended intents, oldest first. An intent that changes again is appended again.
	ended     []reference
	textBytes int
}

// remembered is an intent as its gateway knows it.
type remembered struct {
	ledger.RestoredIntent

	changed time.Time
}

// reference identifies an intent and the time of its last change.
type reference struct {
	org, id string
	changed time.Time
}

// of returns the entry of an intent, creating it if necessary. m.mu must be held.
func (m *memory) of(org, id string) *remembered {
	if m.orgs == nil {
		m.orgs = make(map[string]map[string]*remembered)
	}
	if m.orgs[org] == nil {
		m.orgs[org] = make(map[string]*remembered)
	}
	r := m.orgs[org][id]
	if r == nil {
		r = &remembered{RestoredIntent: ledger.RestoredIntent{Intent: id}}
		m.orgs[org][id] = r
	}
	return r
}

// begin remembers an intent whose call is in progress.
func (m *memory) begin(w *filter.DedupKeys, i *filter.Intent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of(w.Org, i.ID)
	r.Fingerprint, r.Lookalike, r.Owner, r.Row, r.Adoptions, r.changed = w.Pending, w.Lookalikes, w.Owner, i.Raw(), i.Adoptions, time.Time{}
}

// end remembers the new state of an intent, unless another request has adopted it.
func (m *memory) end(e *ledger.IntentUpdate, owner string, taken int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of(e.Org, e.Intent)
	if taken < r.Adoptions {
		return
	}
	r.Fingerprint, r.Owner, r.Row, r.Adoptions, r.changed = e.Fingerprint, owner, e.Row, taken, m.now()
	switch {
	case e.UnsetLookalike:
		r.Lookalike = ""
	case e.Row != "":
		r.Lookalike = e.Lookalike
	}
	if e.SetCreated {
		r.Created = e.Created
	}
	if e.Text != "" {
		m.textBytes -= len(r.Text)
		r.Response, r.Text = e.Response, strconv.FormatInt(r.changed.UnixMilli(), 10)+" "+e.Text
		m.textBytes += len(r.Text)
	}
	m.ended = append(m.ended, reference{e.Org, e.Intent, r.changed})
	m.forget()
}

// forget removes the oldest ended intents while there are too many or they have expired in the store.
func (m *memory) forget() {
	for len(m.ended) > 0 {
		oldest := m.ended[0]
		if len(m.ended) <= maxRemembered && m.textBytes <= maxTextBytes && m.now().Sub(oldest.changed) < filter.IntentTTL {
			return
		}
		m.ended = m.ended[1:]
		if r := m.orgs[oldest.org][oldest.id]; r != nil && r.changed.Equal(oldest.changed) {
			m.textBytes -= len(r.Text)
			delete(m.orgs[oldest.org], oldest.id)
		}
	}
}

// all returns the intents of an organisation.
func (m *memory) all(org string) []ledger.RestoredIntent {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]ledger.RestoredIntent, 0, len(m.orgs[org]))
	for _, r := range m.orgs[org] {
		all = append(all, r.RestoredIntent)
	}
	return all
}
