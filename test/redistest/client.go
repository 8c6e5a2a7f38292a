package redistest

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// patience is how long a client waits for a server: a busy machine may take a while.
const patience = time.Minute

// Conn is a client of a Redis. It is narrower than redis.UniversalClient, which costs each package that mentions it two seconds of compiling;
// so would a function of this package that mentions that one and is inlined.
type Conn interface {
	redis.Cmdable
	AddHook(hook redis.Hook)
	Do(ctx context.Context, args ...any) *redis.Cmd
	Process(ctx context.Context, cmd redis.Cmder) error
	Close() error
}

// Client returns a client of the server at an address, closed when the test ends. It waits a minute where others give up after seconds.
//
//go:noinline
func Client(t testing.TB, addr string) Conn {
	t.Helper()
	return Dial(t, redis.Options{Addr: addr})
}

// Once returns a [Client] that repeats no command, and obeys contexts.
//
//go:noinline
func Once(t testing.TB, addr string) Conn {
	t.Helper()
	return Dial(t, redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true})
}

// As is [Once] for a user of an ACL.
//
//go:noinline
func As(t testing.TB, addr, user, password string) Conn {
	t.Helper()
	return Dial(t, redis.Options{Addr: addr, Username: user, Password: password, MaxRetries: -1, ContextTimeoutEnabled: true})
}

// Dial is [Client] with options.
func Dial(t testing.TB, o redis.Options) *redis.Client {
	t.Helper()
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = cmp.Or(o.DialTimeout, patience), cmp.Or(o.ReadTimeout, patience), cmp.Or(o.WriteTimeout, patience)
	client := redis.NewClient(&o)
	t.Cleanup(func() { _ = client.Close() })
	return client
}
