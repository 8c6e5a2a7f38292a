package idempotency

import (
	"net/http"
	"slices"
	"time"
)

// MaxAnswer is the longest body of an answer that is kept, in bytes. Of a longer one
// the resource is kept.
const MaxAnswer = 64 << 10

// Keep is how long a record with a key is kept after its last change.
const Keep = 24 * time.Hour

// Record is what is known of all requests that are repeats of each other.
type Record struct {
	// Print is the fingerprint of the request.
	Print string `json:"print"`
	// Calls are those whose end the caller has not been told. With a key there is at
	// most one.
	Calls []Call `json:"calls,omitempty"`
	// Answer is that to the first request, nil before there is one.
	Answer *Answer `json:"answer,omitempty"`
}

// Drop forgets a call and reports whether it was there.
func (r *Record) Drop(call string) bool {
	n := len(r.Calls)
	r.Calls = slices.DeleteFunc(r.Calls, func(c Call) bool { return c.ID == call })
	return len(r.Calls) < n
}

// Call is a call that was made, or is being made.
type Call struct {
	// ID is also that of the hold in the ledger, if there is one.
	ID string `json:"id"`
	// Began is when, by the store's clock, in Unix milliseconds.
	Began int64 `json:"began"`
	// Name and Print are what the resource is recognised by; see [spend.Found].
	Name  string `json:"name,omitempty"`
	Print string `json:"print,omitempty"`
	// Known are the resources that were there before; nil if that is not known.
	Known []string `json:"known,omitzero"`
	// Open says that the call has ended and that it is not known how.
	Open bool `json:"open,omitempty"`
	// Resource is the id of what it made, "" while that is not known.
	Resource string `json:"resource,omitempty"`
}

// Age is how long ago the call began.
func (c *Call) Age(now time.Time) time.Duration {
	return time.Duration(now.UnixMilli()-c.Began) * time.Millisecond
}

// Answer is an answer as its caller received it.
type Answer struct {
	Status int         `json:"status"`
	Header http.Header `json:"header"`
	Body   []byte      `json:"body,omitempty"`
}
