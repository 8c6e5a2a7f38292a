package redisstore_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	"github.com/tollgate-dev/tollgate/ratelimit/redistest"
	"github.com/tollgate-dev/tollgate/ratelimit/storetest"
)

func TestMain(m *testing.M) {
	// The random comparison with the model runs on three kinds of server here, and
	// a thousand times as fast on the memory store, where it is longer. What the
	// command line says goes before.
	if err := flag.Set("rapid.checks", "40"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// open returns a client for a URL, closed with the test. Contexts bound what it does,
// for a busy machine may take a while.
func open(t testing.TB, url string) redis.UniversalClient {
	t.Helper()
	o, err := redisstore.Options(url)
	if err != nil {
		t.Fatal(err)
	}
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = time.Minute, time.Minute, time.Minute
	client := redis.NewUniversalClient(o)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func newStore(t testing.TB, client redis.UniversalClient) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMiniredis(t *testing.T) {
	t.Parallel()
	storetest.Test(t, func(t *testing.T) storetest.Fixture {
		m := miniredis.RunT(t)
		return storetest.Fixture{Store: newStore(t, open(t, "redis://"+m.Addr())), SetTime: m.SetTime}
	})
}

func TestRedis(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t)
	storetest.Test(t, func(t *testing.T) storetest.Fixture {
		client := open(t, "redis://"+addr)
		if err := client.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		return storetest.Fixture{Store: newStore(t, client)}
	})
}

func runCluster(t *testing.T, url string) {
	storetest.Test(t, func(t *testing.T) storetest.Fixture {
		client := open(t, url)
		err := client.(*redis.ClusterClient).ForEachMaster(t.Context(), func(ctx context.Context, c *redis.Client) error {
			return c.FlushAll(ctx).Err()
		})
		if err != nil {
			t.Fatal(err)
		}
		return storetest.Fixture{Store: newStore(t, client)}
	})
}
