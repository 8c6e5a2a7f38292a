package filter

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// IntentTTL is the time for which the store keeps an intent or a stored response after its last change. After this time, the gateway no
// longer recognises a repeated request. KEEP in intent.lua must have the same value.
const IntentTTL = 24 * time.Hour

// MaxStoredBody is the maximum size in bytes of a response body that the gateway stores for repeated requests. If a response body is
// larger, the gateway stores only the ID of the resource.
const MaxStoredBody = 64 << 10

// DedupKeys contains the keys in the store that are the same for all equal requests of a caller.
type DedupKeys struct {
	Org string
	// Pending is the key of the intents in progress. Response is the key of the stored response to a request with an idempotency key.
	Pending, Response string
	// Lookalikes is the key of all intents of the organisation that create a resource of the same kind, name and shape. Owner is the
	// caller's key ID.
	Lookalikes, Owner string
}

// Intent is the record of a call in progress that creates a resource. It prevents the gateway from carrying out the call twice. Package
// idempotency stores intents.
//
// An intent is recorded before the call is sent to the platform. Equal requests of one caller have the same DedupKeys. A request that finds
// other intents under its keys may therefore be a repeat of an earlier request.
//
//	recorded ──▶ created(id) ──▶ ended         the caller has the response
//	  │              └─────────▶ abandoned     the caller disconnected: a repeat adopts the resource
//	  ├─────▶ unresolved ──▶ abandoned, ended  the outcome is unknown: the gateway searches for the resource
//	  └─────▶ ended                            refused, or never sent
type Intent struct {
	// ID is also the ID of the hold in the ledger.
	ID string `json:"-"`
	// Began is the time of recording, by the store's clock.
	Began time.Time `json:"-"`
	// Gateway identifies the gateway process that executes the call.
	Gateway string `json:"gateway"`
	// Fingerprint is the fingerprint of the request.
	Fingerprint string `json:"print"`
	// Name and Shape identify the resource; see [ledger.PlatformResource].
	Name  string `json:"name,omitempty"`
	Shape string `json:"shape,omitempty"`
	// Preexisting lists the resources that existed before the call, nil if unknown.
	Preexisting []string `json:"known,omitzero"`
	// Unresolved reports that the call ended with an unknown outcome.
	Unresolved bool `json:"open,omitempty"`
	// Abandoned reports that the caller disconnected before it received the created resource.
	Abandoned bool `json:"left,omitempty"`
	// Resource is the ID of the created resource, "" while it is unknown.
	Resource string `json:"resource,omitempty"`
	// Adoptions counts how often a request has adopted the resource.
	Adoptions int `json:"taken,omitempty"`

	raw string // the stored form
}

// Age returns the time since the intent was recorded.
func (i Intent) Age(now time.Time) time.Duration { return now.Sub(i.Began) }

// Encode returns the JSON form of the intent. The stored form is Began in Unix milliseconds, a space, and this JSON.
func (i Intent) Encode() string {
	text, err := json.Marshal(i)
	if err != nil { // cannot fail: strings, times and booleans
		panic(err)
	}
	return string(text)
}

// Raw returns the stored form that was last read or written, or "" for an intent that is not stored yet. An update of the intent takes
// effect only if the store still has this form.
func (i Intent) Raw() string { return i.raw }

// Restored returns a copy of the intent as if it had just been read from the store: its Raw is the stored form of its current fields.
func (i Intent) Restored() Intent {
	i.raw = strconv.FormatInt(i.Began.UnixMilli(), 10) + " " + i.Encode()
	return i
}

// DecodeIntent parses the stored form of an intent.
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

// Pending is the result of a lookup by DedupKeys.
type Pending struct {
	// Now is the time of the lookup by the store's clock, QueriedAt by this gateway's clock.
	Now, QueriedAt time.Time
	// Intents are the intents in progress, oldest first.
	Intents []Intent
	// Response is the stored response to the first request with the idempotency key, or nil.
	Response *StoredResponse
}

// StoredResponse is a response as the first caller received it.
type StoredResponse struct {
	// Fingerprint is the fingerprint of the request.
	Fingerprint string      `json:"print"`
	Status      int         `json:"status"`
	Header      http.Header `json:"header"`
	Body        []byte      `json:"body,omitempty"`
}

// CallerStatus describes whether the caller of another intent is still connected.
type CallerStatus uint8

const (
	// CallerUnknown means that the status has not been determined.
	CallerUnknown CallerStatus = iota
	// CallerConnected means that the caller is still waiting, so an equal request asks for a second resource.
	CallerConnected
	// CallerGone means that the caller has disconnected or that its gateway is dead.
	CallerGone
)

// IntentUpdate describes the state of an intent after its call.
type IntentUpdate struct {
	// Next is the new state of the intent, nil if it has ended.
	Next *Intent
	// Resource identifies the created resource by kind and ID, unlike Intent.Resource, which is only an ID. It is "" if nothing was created.
	Resource string
	// Unindex removes the intent from the index of lookalikes.
	Unindex bool
	// Response is the response to store for repeats of a request with an idempotency key, or nil.
	Response *StoredResponse
}
