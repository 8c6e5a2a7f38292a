package redistest

import (
	"cmp"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// patience is how long a client waits for a server: a busy machine may take a while.
const patience = time.Minute

// Client returns a client of a server, closed when the test ends. Unless the
// options say otherwise it waits a minute where others give up after seconds.
func Client(t testing.TB, o redis.Options) *redis.Client {
	t.Helper()
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = cmp.Or(o.DialTimeout, patience), cmp.Or(o.ReadTimeout, patience), cmp.Or(o.WriteTimeout, patience)
	client := redis.NewClient(&o)
	t.Cleanup(func() { _ = client.Close() })
	return client
}
