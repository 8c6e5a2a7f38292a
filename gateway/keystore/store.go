package keystore

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed swap.lua
var swapSource string

// ErrUnavailable means that the store cannot be asked.
var ErrUnavailable = errors.New("keystore: the store cannot be asked")

// Store keeps records in Redis. It is safe for concurrent use. It does not own its
// client.
type Store struct {
	client redis.UniversalClient
	prefix string
	swap   *redis.Script
}

// New returns a store whose keys begin with prefix. It does not dial.
func New(client redis.UniversalClient, prefix string) *Store {
	return &Store{client: client, prefix: prefix, swap: redis.NewScript(swapSource)}
}

func (s *Store) key(org, sort string) string { return s.prefix + "{" + org + "}:" + sort }

// Versions returns what Load would return as the version of each organisation, in one
// exchange: one GET each. Two versions of the same records may differ, but the same
// version is never that of different ones.
func (s *Store) Versions(ctx context.Context, orgs []string) (map[string]string, error) {
	replies := make([]*redis.StringCmd, len(orgs))
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, org := range orgs {
			replies[i] = p.Get(ctx, s.key(org, "version"))
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, unavailable(err)
	}
	versions := make(map[string]string, len(orgs))
	for i, reply := range replies {
		version, err := reply.Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, unavailable(err)
		}
		versions[orgs[i]] = version
	}
	return versions, nil
}

// Load returns the records of an organisation by id. The records are at least as new
// as the version, which is "" if none was ever written.
func (s *Store) Load(ctx context.Context, org string) (version string, records map[string]string, err error) {
	version, err = s.client.Get(ctx, s.key(org, "version")).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", nil, unavailable(err)
	}
	records, err = s.client.HGetAll(ctx, s.key(org, "all")).Result()
	if err != nil {
		return "", nil, unavailable(err)
	}
	return version, records, nil
}

// Swap replaces the record of an id if it is still old, and reports whether it did. ""
// is no record.
func (s *Store) Swap(ctx context.Context, org, id, old, next string) (bool, error) {
	keys, args := []string{s.key(org, "all"), s.key(org, "version")}, []any{id, old, next, rand.Text()}
	reply, err := s.swap.Run(ctx, s.client, keys, args...).Slice()
	again := err != nil && ctx.Err() == nil
	if again {
		reply, err = s.swap.Run(ctx, s.client, keys, args...).Slice()
	}
	if err != nil {
		return false, unavailable(err)
	}
	if len(reply) != 2 {
		return false, fmt.Errorf("%w: a reply of %d parts", ErrUnavailable, len(reply))
	}
	have, _ := reply[1].(string)
	// It was replaced now, or by the try whose reply was lost.
	return reply[0] == int64(1) || again && have == next, nil
}

// Use notes when keys were last used, by id.
func (s *Store) Use(ctx context.Context, org string, used map[string]time.Time) error {
	values := make([]any, 0, 2*len(used))
	for _, id := range slices.Sorted(maps.Keys(used)) {
		values = append(values, id, used[id].Unix())
	}
	if err := s.client.HSet(ctx, s.key(org, "used"), values...).Err(); err != nil {
		return unavailable(err)
	}
	return nil
}

// Used returns when the keys of an organisation were last used, by id.
func (s *Store) Used(ctx context.Context, org string) (map[string]time.Time, error) {
	values, err := s.client.HGetAll(ctx, s.key(org, "used")).Result()
	if err != nil {
		return nil, unavailable(err)
	}
	used := make(map[string]time.Time, len(values))
	for id, text := range values {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: %s was used at %q", ErrUnavailable, id, text)
		}
		used[id] = time.Unix(seconds, 0).UTC()
	}
	return used, nil
}

// Forget drops what is known of the use of keys that are gone.
func (s *Store) Forget(ctx context.Context, org, id string) error {
	if err := s.client.HDel(ctx, s.key(org, "used"), id).Err(); err != nil {
		return unavailable(err)
	}
	return nil
}

func unavailable(err error) error { return fmt.Errorf("%w: %w", ErrUnavailable, err) }
