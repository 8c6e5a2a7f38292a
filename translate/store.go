package translate

import (
	"context"
	"encoding/json"
	"time"
)

// Key identifies one value in a Store. Values of different accounts are separate.
type Key struct {
	// Account is Incoming.Account.
	Account string
	// Kind is one of the Kind constants.
	Kind string
	// ID is the platform's id of the resource.
	ID string
}

// Store is durable storage for facts that v2 does not return, such as the template of an endpoint or the order of a GPU list. It is
// advisory: a missing value or a failing store makes responses less exact but never wrong.
//
// Values are JSON documents, stored unchanged. Implementations are safe for concurrent use and pass the test suite in
// test/translate/storetest.
type Store interface {
	// Get returns the value of the key; ok is false if the key does not exist.
	Get(ctx context.Context, key Key) (value json.RawMessage, ok bool, err error)
	// Put sets the value of the key. The value expires after ttl, or never if ttl is zero.
	Put(ctx context.Context, key Key, value json.RawMessage, ttl time.Duration) error
	// AddAll sets values by id for one account and kind. It does not change existing values. Each value is set atomically, and all of them in
	// as few operations as possible.
	AddAll(ctx context.Context, account, kind string, values map[string]json.RawMessage, ttl time.Duration) error
	// Delete removes the key. Deleting a missing key is not an error.
	Delete(ctx context.Context, key Key) error
	// Find returns the values of the ids of one account and kind, in the same order, with "" for a missing value. Its
	// cost depends on the number of ids, not on the number of records.
	Find(ctx context.Context, account, kind string, ids []string) ([]string, error)
	// List returns all values of one account and kind by id. The result is never nil.
	List(ctx context.Context, account, kind string) (map[string]json.RawMessage, error)
}
