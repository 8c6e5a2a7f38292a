package approval

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway/store"
)

// Errors of a Store.
var (
	// ErrFull means that as many requests are pending as may be.
	ErrFull = store.ErrFull
	// ErrNone means that no request has an id.
	ErrNone = errors.New("approval: no such request")
)

// Store keeps records in Redis, each under a question. It is safe for concurrent use.
// It does not own its client.
type Store struct{ *store.Store[Record] }

// New returns a store whose keys begin with prefix. It does not dial.
func New(client redis.Cmdable, prefix string) *Store {
	return &Store{store.New[Record](client, prefix)}
}

// Entry is a record as it was found. Its ID is the question.
type Entry = store.Entry[Record]

// all is the index of all records of an organisation.
const all = "all"

// Swap replaces an entry that was read before. It returns the entry there is
// afterwards and whether it is the new one, or ErrFull.
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

// Find returns the record with an id, or ErrNone.
func (s *Store) Find(ctx context.Context, org, id string) (Entry, error) {
	entries, err := s.Entries(ctx, org)
	if err != nil {
		return Entry{}, err
	}
	for _, e := range entries {
		if e.Record.ID == id {
			return s.Get(ctx, org, e.ID) // with the store's clock
		}
	}
	return Entry{}, ErrNone
}
