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
	Client Conn
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

func connect(t *testing.T, addrs ...string) Conn {
	t.Helper()
	client := redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: addrs, MaxRetries: -1, ContextTimeoutEnabled: true,
		DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience,
	})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Away returns a client of a server that answers every command with an error.
func Away(t testing.TB) Conn {
	t.Helper()
	server := miniredis.RunT(t)
	server.SetError("LOADING for a while")
	return Once(t, server.Addr())
}

// Empty deletes everything. An embedded server has the system's clock again.
func (r Redis) Empty(t testing.TB) {
	t.Helper()
	if r.Embedded != nil {
		r.Embedded.SetTime(time.Time{})
	}
	r.each(t, func(ctx context.Context, c redis.Cmdable) error { return c.FlushAll(ctx).Err() })
}

// Keys returns the keys of all nodes, sorted.
func (r Redis) Keys(t testing.TB) []string {
	t.Helper()
	var mu sync.Mutex
	var all []string
	r.each(t, func(ctx context.Context, c redis.Cmdable) error {
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
func (r Redis) each(t testing.TB, do func(ctx context.Context, c redis.Cmdable) error) {
	t.Helper()
	var err error
	switch c := r.Client.(type) {
	case *redis.ClusterClient:
		err = c.ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error { return do(ctx, node) })
	case *redis.Client:
		err = do(t.Context(), c)
	}
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
}
