package redisstore_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	"github.com/tollgate-dev/tollgate/test/limits/storetest"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

func TestMain(m *testing.M) {
	// The random comparison with the model runs on three kinds of server here, and
	// a thousand times as fast on the memory store, where it is longer. A failover is a
	// wait, so tests that wait for one run beside the others, with any number of processors.
	// Flags of the command line go before.
	for name, value := range map[string]string{"rapid.checks": "40", "test.parallel": "6"} {
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m)
}

// open returns a client for a URL, closed with the test. Contexts bound its calls, for
// a busy machine may take a while.
func open(t testing.TB, url string) redistest.Conn {
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

func newStore(t testing.TB, client redistest.Conn) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestContract(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r redistest.Redis) {
		storetest.Test(t, func(t *testing.T) storetest.Fixture {
			t.Helper()
			r.Empty(t)
			f := storetest.Fixture{Store: newStore(t, r.Client)}
			if r.Embedded != nil {
				f.SetTime = r.Embedded.SetTime
			}
			return f
		})
	})
}
