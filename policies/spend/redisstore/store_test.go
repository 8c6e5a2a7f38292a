package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/policies/spend"
	"github.com/tollgate-dev/tollgate/policies/spend/redisstore"
	"github.com/tollgate-dev/tollgate/policies/spend/storetest"
	"github.com/tollgate-dev/tollgate/ratelimit/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, addr string, zones spend.Zones) *redisstore.Store {
	t.Helper()
	return redisstore.New(redistest.Client(t, redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true}), "tg:spend:", zones)
}

func TestContract(t *testing.T) {
	redistest.Each(t, func(t *testing.T, r redistest.Redis) {
		storetest.Test(t, func(t *testing.T, zones spend.Zones) storetest.Fixture {
			t.Helper()
			r.Empty(t)
			f := storetest.Fixture{Store: redisstore.New(r.Client, "tg:spend:", zones)}
			if r.Embedded != nil {
				f.SetTime = clock(r.Embedded)
			}
			return f
		})
	})
}

// clock returns what sets the clock of a server, and ends keys.
func clock(server *miniredis.Miniredis) func(time.Time) {
	var now time.Time
	return func(to time.Time) {
		if !now.IsZero() && to.After(now) {
			server.FastForward(to.Sub(now))
		}
		now = to
		server.SetTime(to)
	}
}

// rebuild makes a ledger complete.
func rebuild(t *testing.T, s *redisstore.Store, token string) {
	t.Helper()
	if err := s.Begin(t.Context(), "acme", token); err != nil {
		t.Fatal(err)
	}
	if done, err := s.Finish(t.Context(), "acme", token); err != nil || !done {
		t.Fatalf("Finish = %t, %v, want a complete ledger", done, err)
	}
}

func reserve(t *testing.T, s *redisstore.Store, hold string) spend.Status {
	t.Helper()
	out, err := s.Reserve(t.Context(), "acme", &spend.Reservation{
		Hold: hold, Kind: "pod", After: spend.Amounts{1}, Limits: make([][spend.Ceilings]int64, 1),
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Status
}

// A store that was emptied, or that went back to an old state, admits nothing until
// it was rebuilt, whichever gateway asks.
func TestALostStoreIsClosed(t *testing.T) {
	for _, tt := range []struct {
		name string
		lose func(t *testing.T, server *miniredis.Miniredis, old string)
	}{
		{"emptied", func(_ *testing.T, server *miniredis.Miniredis, _ string) { server.FlushAll() }},
		{"restored from an old state", func(_ *testing.T, server *miniredis.Miniredis, old string) {
			server.HSet("tg:spend:{acme}:accounts", "", old)
			server.Del("tg:spend:{acme}:holds")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := miniredis.RunT(t)
			server.SetTime(time.Date(2027, 3, 14, 12, 0, 0, 0, time.UTC))
			a, b := open(t, server.Addr(), nil), open(t, server.Addr(), nil)
			rebuild(t, a, "one")
			old := server.HGet("tg:spend:{acme}:accounts", "")
			if got := reserve(t, a, "h1"); got != spend.Admitted {
				t.Fatalf("status = %d, want admitted", got)
			}
			tt.lose(t, server, old)
			if state, err := a.Show(t.Context(), "acme"); err != nil || state.Complete {
				t.Errorf("Show: complete is %t (%v), want false", state.Complete, err)
			}
			if got := reserve(t, a, "h2"); got != spend.Closed {
				t.Errorf("status = %d, want closed", got)
			}
			if got := reserve(t, b, "h3"); got != spend.Closed {
				t.Errorf("status of another gateway = %d, want closed", got)
			}
			rebuild(t, b, "two")
			if got := reserve(t, a, "h4"); got != spend.Admitted {
				t.Errorf("status after the rebuild = %d, want admitted", got)
			}
		})
	}
}

// A rebuild during which the store is lost again does not open it.
func TestARebuildThatIsLostOpensNothing(t *testing.T) {
	server := miniredis.RunT(t)
	s := open(t, server.Addr(), nil)
	if err := s.Begin(t.Context(), "acme", "one"); err != nil {
		t.Fatal(err)
	}
	server.FlushAll()
	if done, err := s.Finish(t.Context(), "acme", "one"); err != nil || done {
		t.Errorf("Finish = %t, %v, want false", done, err)
	}
}

func TestScriptsAreLoadedAgain(t *testing.T) {
	addr := redistest.Start(t)
	s := open(t, addr, nil)
	rebuild(t, s, "one")
	redistest.Client(t, redis.Options{Addr: addr}).ScriptFlush(t.Context())
	if got := reserve(t, s, "h1"); got != spend.Admitted {
		t.Errorf("status = %d, want admitted", got)
	}
}

// What a real Redis may lose is said, and of one that is set up for a ledger nothing.
func TestPerils(t *testing.T) {
	addr := redistest.Start(t)
	store, client := open(t, addr, nil), redistest.Client(t, redis.Options{Addr: addr})
	for _, tt := range []struct {
		appendonly, policy string
		want               int
	}{
		{"no", "allkeys-lru", 2}, {"yes", "volatile-ttl", 1}, {"yes", "noeviction", 0},
	} {
		for name, value := range map[string]string{"appendonly": tt.appendonly, "maxmemory-policy": tt.policy} {
			if err := client.ConfigSet(t.Context(), name, value).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := store.Perils(t.Context()); err != nil || len(got) != tt.want {
			t.Errorf("appendonly %s, %s: Perils = %q, %v, want %d", tt.appendonly, tt.policy, got, err, tt.want)
		}
	}
}

// The lock of a gateway that died holds up no pass for long.
func TestALockIsNotWaitedForLong(t *testing.T) {
	store := open(t, redistest.Start(t), nil)
	if _, err := store.Lock(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // less than the lock lasts
	defer cancel()
	unlock, err := store.Lock(ctx, "acme")
	if err != nil {
		t.Fatalf("Lock = %v, want it not to wait for the other", err)
	}
	unlock()
}
