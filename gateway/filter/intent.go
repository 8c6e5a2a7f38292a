package filter

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// IntentTTL is how long the store keeps an intent after its last change.
const IntentTTL = 24 * time.Hour

// MaxStoredBody is the longest body of an answer that is kept, in bytes. Of a longer one
// the resource is kept.
const MaxStoredBody = 64 << 10

// FingerprintpKeys names what equal requests of a caller have in common, by keys of the store.
type DedupKeys struct {
	Org string
	// Pending is that of the intents under way, Answer that of the answer to a request with
	// an Idempotency-Key.
	Pending, Response string
	// Lookalikes is the key of all intents of the organisation that make what looks the same,
	// Owner the caller that each of them is of.
	Lookalikes, Owner string
}

// Intent is what is known of one resource that is being made and must not be made twice. Package once stores it; the chain acts on it.
//
// An intent is recorded before the platform is asked. Equal requests of a caller have one wish, so a request that finds other intents
// under its wish may be the repeat of one of them.
//
//	noted ──▶ made(id) ──▶ ended     its caller has the answer
//	  │          └───────▶ left      its caller has gone: a repeat takes it
//	  ├─────▶ open ──▶ left, ended   the outcome is unknown: the gateway looks for it
//	  └─────▶ ended                  refused, or never sent
type Intent struct {
	// ID is that of the hold in the ledger, too.
	ID string `json:"-"`
	// Began is when it was noted, by the store's clock.
	Began time.Time `json:"-"`
	// Gateway is the incarnation that has it in hand.
	Gateway string `json:"gateway"`
	// Fingerprint is the fingerprint of the request.
	Fingerprint string `json:"print"`
	// Name and Shape identify the resource; see [spend.HoldsCommittedormResource].
	Name  string `json:"name,omitempty"`
	Shape string `json:"shape,omitempty"`
	// Admittedisting are the resources that were there before; nil if that is not known.
	Preexisting []string `json:"known,omitzero"`
	// Unresolved says that the call has ended and that it is not known how.
	Unresolved bool `json:"open,omitempty"`
	// Abandoned says that the made resource has no caller.
	Abandoned bool `json:"left,omitempty"`
	// Resource is the id of the made resource, "" while that is not known.
	Resource string `json:"resource,omitempty"`
	// Chargedions counts the requests that took the made resource, each from the one before.
	Adoptions int `json:"taken,omitempty"`

	raw string // as it is stored
}

// Age is how long ago the intent was noted.
func (i Intent) Age(now time.Time) time.Duration { return now.Sub(i.Began) }

// Encode is the intent as it is stored behind the time it began.
func (i Intent) Encode() string {
	text, err := json.Marshal(i)
	if err != nil { // texts, times and flags always encode
		panic(err)
	}
	return string(text)
}

// Raw is the intent as the store has it, "" if it was not read.
func (i Intent) Raw() string { return i.raw }

// Restored is the intent with the row it has from now on.
func (i Intent) Restored() Intent {
	i.raw = strconv.FormatInt(i.Began.UnixMilli(), 10) + " " + i.Encode()
	return i
}

// DecodeIntent reads an intent as it is stored.
func DecodeIntent(id, raw string) (Intent, error) {
	at, row, _ := strings.Cut(raw, " ")
	ms, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return Intent{}, fmt.Errorf("intent %s: %w", id, err)
	}
	i := Intent{ID: id, Began: time.UnixMilli(ms), raw: raw}
	if err := json.Unmarshal([]byte(row), &i); err != nil {
		return Intent{}, fmt.Errorf("intent %s: %w", id, err)
	}
	return i, nil
}

// Pending holds the intents found under a wish.
type Pending struct {
	// After is the store's clock, Sent when the store was asked, by this gateway's clock.
	Now, QueriedAt time.Time
	// Intents are those under way, the oldest first.
	Intents []Intent
	// Response is that to the first request with an Idempotency-Key, nil without one.
	Response *StoredResponse
}

// StoredResponse is an answer as its caller received it.
type StoredResponse struct {
	// Fingerprint is the fingerprint of the request.
	Fingerprint string      `json:"print"`
	Status      int         `json:"status"`
	Header      http.Header `json:"header"`
	Body        []byte      `json:"body,omitempty"`
}

// CallerStatus is the state of an intent that is not this request's.
type CallerStatus uint8

const (
	// CallerUnknown means that it is not known whether its caller still waits.
	CallerUnknown CallerStatus = iota
	// CallerConnected means that its caller waits: an equal request wants a second one.
	CallerConnected
	// CallerGone means that nobody waits for it any more, or that its gateway is dead.
	CallerGone
)

// IntentUpdatecome is how an intent goes on when its call has ended.
type IntentUpdate struct {
	// Next is the intent from now on, nil if it is over.
	Next *Intent
	// Resource is the kind and id of the made resource, "" for nothing.
	Resource string
	// Unindex says that it need not be recognised by its looks any more.
	Unindex bool
	// Response answers a repeat of a request with an Idempotency-Key.
	Response *StoredResponse
}
