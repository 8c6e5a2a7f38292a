package translate

import (
	"context"
	"encoding/json"
	"time"
)

// Key names one remembered record. Records of different accounts never meet.
type Key struct {
	// Account is Incoming.Account.
	Account string
	// Kind is one of the Kind constants.
	Kind string
	// ID is the platform's id of the resource.
	ID string
}

// Store is the durable memory for facts that v2 forgets: template links, the order of
// GPU lists, timeouts it refuses. It is advisory: a missing entry or a failing
// store makes answers less exact and never wrong.
//
// Values are JSON documents, kept as given. Implementations are safe for
// concurrent use and pass storetest.Test.
type Store interface {
	// Get returns the value under the key; ok is false when there is none.
	Get(ctx context.Context, key Key) (value json.RawMessage, ok bool, err error)
	// Put writes the value, replacing the one before. It is forgotten after
	// ttl; zero keeps it for ever.
	Put(ctx context.Context, key Key, value json.RawMessage, ttl time.Duration) error
	// AddAll is Put for those records of one account and kind, by id, whose keys have no value yet, each in
	// one atomic step of its own, in as few exchanges as there can be.
	AddAll(ctx context.Context, account, kind string, values map[string]json.RawMessage, ttl time.Duration) error
	// Delete forgets the key; one that is not there is no error.
	Delete(ctx context.Context, key Key) error
	// Find returns the values of some ids of one account and kind, in their order,
	// "" for none. Its cost grows with the ids, not with the records.
	Find(ctx context.Context, account, kind string, ids []string) ([]string, error)
	// List returns all values of one account and kind by id, never nil.
	List(ctx context.Context, account, kind string) (map[string]json.RawMessage, error)
}

// noStore is the store of those who configured none.
type noStore struct{}

func (noStore) Get(context.Context, Key) (json.RawMessage, bool, error) { return nil, false, nil }

func (noStore) Put(context.Context, Key, json.RawMessage, time.Duration) error { return nil }

func (noStore) AddAll(context.Context, string, string, map[string]json.RawMessage, time.Duration) error {
	return nil
}

func (noStore) Delete(context.Context, Key) error { return nil }

func (noStore) Find(_ context.Context, _, _ string, ids []string) ([]string, error) {
	return make([]string, len(ids)), nil
}

func (noStore) List(context.Context, string, string) (map[string]json.RawMessage, error) {
	return map[string]json.RawMessage{}, nil
}
