package redistest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// Redis is a Redis of any kind.
type Redis struct {
	// Client repeats no command, and obeys contexts.
	Client redis.UniversalClient
	// Embedded is the server if it is the embedded one, whose clock can be set.
	Embedded *miniredis.Miniredis
}

// Each runs a test on each kind of Redis there is: embedded, a server, and a cluster.
func Each(t *testing.T, body func(t *testing.T, r Redis)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) {
		m := miniredis.RunT(t)
		body(t, Redis{connect(t, m.Addr()), m})
	})
	t.Run("server", func(t *testing.T) { body(t, Redis{Client: connect(t, Start(t))}) })
	t.Run("cluster", func(t *testing.T) { body(t, Redis{Client: connect(t, Cluster(t, 3)...)}) })
}

func connect(t *testing.T, addrs ...string) redis.UniversalClient {
	t.Helper()
	client := redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: addrs, MaxRetries: -1, ContextTimeoutEnabled: true,
		DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience,
	})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Away returns a client of a server that answers every command with an error.
func Away(t testing.TB) *redis.Client {
	t.Helper()
	server := miniredis.RunT(t)
	server.SetError("LOADING for a while")
	return Client(t, redis.Options{Addr: server.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true})
}

// Empty deletes everything. An embedded server has the system's clock again.
func (r Redis) Empty(t testing.TB) {
	t.Helper()
	if r.Embedded != nil {
		r.Embedded.SetTime(time.Time{})
	}
	r.each(t, func(ctx context.Context, c *redis.Client) error { return c.FlushAll(ctx).Err() })
}

// Keys returns the keys of all nodes, sorted.
func (r Redis) Keys(t testing.TB) []string {
	t.Helper()
	var mu sync.Mutex
	var all []string
	r.each(t, func(ctx context.Context, c *redis.Client) error {
		keys, err := c.Keys(ctx, "*").Result()
		mu.Lock()
		defer mu.Unlock()
		all = append(all, keys...)
		return err
	})
	slices.Sort(all)
	return all
}

// each calls do with a client of each node, at once.
func (r Redis) each(t testing.TB, do func(ctx context.Context, c *redis.Client) error) {
	t.Helper()
	var err error
	switch c := r.Client.(type) {
	case *redis.ClusterClient:
		err = c.ForEachMaster(t.Context(), do)
	case *redis.Client:
		err = do(t.Context(), c)
	}
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
}
