package redisstore_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// TestFailoverIsNoticed counts through a Sentinel while a replica takes over:
// nothing is admitted by the new master until the pause is over.
func TestFailoverIsNoticed(t *testing.T) {
	t.Parallel()
	g := redistest.Sentinel(t, 1)
	s, clock := newPausing(t, g.URL())
	if !s.BehindSentinel() {
		t.Error("a client that asks Sentinels was not recognised")
	}
	ops := one(100)
	for range 3 {
		if _, err := s.Apply(t.Context(), ops); err != nil {
			t.Fatal(err)
		}
	}
	seen := ops[0].After[0]
	g.Failover()
	noticed := false
	for end := time.Now().Add(time.Minute); !noticed && time.Now().Before(end); {
		// Until the client hears of the failover it may talk to the old master,
		// who may count still.
		_, err := s.Apply(t.Context(), one(100))
		noticed = errors.Is(err, ratelimit.ErrRestarted)
	}
	if !noticed {
		t.Fatal("the failover was not noticed")
	}
	restore := ratelimit.Adjustment{Ref: ratelimit.Ref{Kind: ratelimit.KindKey, ID: "k"}, State: seen}
	if err := s.Adjust(t.Context(), "org_a", []ratelimit.Adjustment{restore}); err != nil {
		t.Fatalf("Adjust during the pause: %v", err)
	}
	if _, err := s.Apply(t.Context(), one(100)); !errors.Is(err, ratelimit.ErrRestarted) {
		t.Errorf("during the pause: %v", err)
	}
	clock.nanos.Add(int64(2 * time.Second))
	if _, err := s.Apply(t.Context(), ops); err != nil {
		t.Fatalf("after the pause: %v", err)
	}
	if got := ops[0].After[0].Count[2]; got < 4 {
		t.Errorf("the day counts %d after a failover, want what was restored and this call", got)
	}
	direct := newStore(t, open(t, "redis://"+g.Addr()))
	if snap, err := direct.Snapshot(t.Context(), "org_a"); err != nil || len(snap.Scopes) != 1 {
		t.Errorf("the new master has %+v, %v; want one scope", snap, err)
	}
}

// TestFailoverUnderLoad lets three gateways use up a quota while a replica takes
// over. With a master that stops counting when its replicas leave it, as the
// documentation asks, no call too many is admitted, and after the
// pause it goes on.
func TestFailoverUnderLoad(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts four servers")
	}
	for _, mode := range []ratelimit.Mode{ratelimit.ModeExact, ratelimit.ModeLeased} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			// Large enough that much is left when the failover begins, however long
			// this goroutine has to wait for its turn.
			const quota = 15_000
			g := redistest.Sentinel(t, 1, "--min-replicas-to-write", "1")
			var admitted, before atomic.Int64
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
			defer cancel()
			var wg sync.WaitGroup
			for range 3 {
				l := newLimiter(t, g.URL(), mode)
				run, stop := context.WithCancel(ctx)
				wg.Go(func() { _ = l.Run(run) })
				var callers sync.WaitGroup
				for range 4 {
					callers.Go(func() { useUp(ctx, l, quota, &admitted) })
				}
				wg.Go(func() {
					callers.Wait()
					stop()
				})
			}
			for poll := time.NewTicker(10 * time.Millisecond); admitted.Load() < quota/50; <-poll.C {
				if ctx.Err() != nil {
					t.Fatalf("only %d calls were admitted before the failover", admitted.Load())
				}
			}
			before.Store(admitted.Load())
			g.Failover()
			wg.Wait()
			t.Logf("admitted %d of %d, %d of them before the failover", admitted.Load(), quota, before.Load())
			if n := admitted.Load(); n > quota || n < quota*9/10 || n == before.Load() {
				t.Errorf("admitted %d of %d, %d before the failover; want nearly all and not one too many", n, quota, before.Load())
			}
			charged := one(quota)
			if _, err := newStore(t, open(t, "redis://"+g.Addr())).Apply(t.Context(), charged); err != nil {
				t.Fatal(err)
			}
			if got := charged[0].After[0].Count[2]; got < admitted.Load() {
				t.Errorf("the new master counts %d, but %d were admitted", got, admitted.Load())
			}
		})
	}
}

func newLimiter(t *testing.T, url string, mode ratelimit.Mode) *ratelimit.Limiter {
	t.Helper()
	s, err := redisstore.New(open(t, url), redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	config := ratelimit.DefaultConfig()
	config.Mode, config.Timeout = mode, 250*time.Millisecond
	l, err := ratelimit.New(config, ratelimit.Deps{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// useUp makes calls until the quota is gone or ctx ends. A refusal may mean that
// permits are held elsewhere, so it ends only after some time without success.
func useUp(ctx context.Context, l *ratelimit.Limiter, quota int64, admitted *atomic.Int64) {
	pace := time.NewTicker(2 * time.Millisecond)
	defer pace.Stop()
	refused := time.Time{}
	for ctx.Err() == nil && admitted.Load() < quota {
		d, err := l.Take(ctx, ratelimit.Take{Org: "org_a", Class: ratelimit.ClassWrite, Scopes: []ratelimit.Scope{
			{Kind: ratelimit.KindKey, ID: "k", Limit: ratelimit.Limit{Day: quota}},
		}})
		switch {
		case err != nil || d.Allowed:
			if d.Allowed {
				admitted.Add(1)
			}
			refused = time.Time{}
		case refused.IsZero():
			refused = time.Now()
		case time.Since(refused) > 4*time.Second:
			return
		}
		<-pace.C
	}
}

// conn is a connection to an address.
type conn struct {
	net.Conn
	to string
}

func (c conn) RemoteAddr() net.Addr {
	addr, _ := net.ResolveTCPAddr("tcp", c.to) // a literal address
	return addr
}

// TestOtherAddressIsAnotherServer makes connections to changing addresses: behind
// Sentinel that begins a pause, elsewhere it is the way of proxies and of names
// with several addresses.
func TestOtherAddressIsAnotherServer(t *testing.T) {
	plain := open(t, "redis://"+miniredis.RunT(t).Addr())
	guarded := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: "main", SentinelAddrs: []string{"127.0.0.1:1"}, ContextTimeoutEnabled: true,
	})
	t.Cleanup(func() { _ = guarded.Close() })
	for _, tt := range []struct {
		name   string
		client redistest.Conn
		config redisstore.Config
		want   int64
	}{
		{"behind Sentinel", guarded, redisstore.Config{}, 2},
		{"behind Sentinel, without recovery", guarded, redisstore.Config{Recovery: -1}, 0},
		{"one node", plain, redisstore.Config{}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := redisstore.New(tt.client, tt.config)
			if err != nil {
				t.Fatal(err)
			}
			for _, to := range []string{"127.0.0.1:1001", "127.0.0.1:1001", "127.0.0.1:1002", "127.0.0.1:1001"} {
				if err := s.Dial(t.Context(), conn{to: to}); err != nil {
					t.Fatal(err)
				}
			}
			if got := s.Epoch(); got != tt.want {
				t.Errorf("%d changes of the server were noticed, want %d", got, tt.want)
			}
		})
	}
}
