package approval

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway/store"
)

// Errors of a Store.
var (
	// ErrFull means that the limit of pending requests is reached.
	ErrFull = store.ErrFull
	// ErrNotFound means that no request has the given ID.
	ErrNotFound = errors.New("approval: request not found")
)

// Store stores records in Redis, each under the digest of its call. It is safe for concurrent use. It does not close its client.
type Store struct{ *store.Store[Record] }

// New returns a Store whose keys start with prefix. It does not dial.
func New(client redis.Cmdable, prefix string) *Store {
	return &Store{store.New[Record](client, prefix)}
}

// Entry is a stored record. Its ID is the digest of the call.
type Entry = store.Entry[Record]

// all is the index of all records of an organisation.
const all = "all"

// Swap replaces an entry that was read before, unless it has changed since. It returns the stored entry, and reports whether that is the
// new entry. It returns ErrFull if too many requests are pending.
func (s *Store) Swap(ctx context.Context, org string, old Entry, next *Record) (Entry, bool, error) {
	answered := next.State != Pending
	return s.Store.Swap(ctx, org, old, store.Write[Record]{Record: next, Until: next.Until, Indexes: []store.Index{
		{Name: all},
		{Name: "pending", Exclude: answered, MaxRecords: MaxPending},
		{Name: "pending:" + next.Key, Exclude: answered, MaxRecords: MaxPendingCaller},
	}})
}

// Entries returns all records of an organisation.
func (s *Store) Entries(ctx context.Context, org string) ([]Entry, error) {
	return s.Store.Entries(ctx, org, all)
}

// Find returns the record with an ID, or ErrNotFound.
func (s *Store) Find(ctx context.Context, org, id string) (Entry, error) {
	entries, err := s.Entries(ctx, org)
	if err != nil {
		return Entry{}, err
	}
	for _, e := range entries {
		if e.Record.ID == id {
			return s.Get(ctx, org, e.ID) // returns the store's time
		}
	}
	return Entry{}, ErrNotFound
}
