package idempotency

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway/record"
)

// Store keeps records in Redis. It is safe for concurrent use. It does not own its
// client.
type Store struct {
	*record.Store[Record]

	claims *record.Store[string]
	client redis.UniversalClient
}

// New returns a store whose keys begin with prefix. It does not dial.
func New(client redis.UniversalClient, prefix string) *Store {
	return &Store{record.New[Record](client, prefix), record.New[string](client, prefix), client}
}

// Entry is a record as it was found.
type Entry = record.Entry[Record]

// Swap replaces an entry that was read before, or writes the first if that is the
// zero Entry; nil deletes it. It returns the entry there is afterwards, and whether it
// is the new one.
func (s *Store) Swap(ctx context.Context, org, id string, old Entry, next *Record, keep time.Duration) (Entry, bool, error) {
	old.ID = id
	return s.Store.Swap(ctx, org, old, record.Write[Record]{Record: next, Keep: keep})
}

// made begins the ids of what was claimed.
const made = "made/"

// Mark returns the key and value of what Claim writes, for a store that writes it
// with what else the call has led to.
func (s *Store) Mark(org, resource, call string) (key, value string) {
	return s.Key(org, made+resource), record.First(strconv.Quote(call))
}

// Claim makes a resource that of a call, and reports whether it is: false if another
// call has it already.
func (s *Store) Claim(ctx context.Context, org, resource, call string) (bool, error) {
	e, _, err := s.claims.Swap(ctx, org, record.Entry[string]{ID: made + resource}, record.Write[string]{Record: &call, Keep: Keep})
	return e.Record != nil && *e.Record == call, err
}

// Made is a resource and the call that has made it.
type Made struct{ Org, Resource, Call string }

// ClaimAll is Claim for many at once, each by itself. It does not report what came of
// them.
func (s *Store) ClaimAll(ctx context.Context, all []Made) error {
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, m := range all {
			key, value := s.Mark(m.Org, m.Resource, m.Call)
			p.SetNX(ctx, key, value, Keep)
		}
		return nil
	})
	return record.Unavailable(err)
}
