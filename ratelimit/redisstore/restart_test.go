package redisstore_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/alicebob/miniredis/v2"

	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// stopped is a clock in the hands of a test.
type stopped struct{ nanos atomic.Int64 }

func (c *stopped) Now() time.Time { return time.Unix(0, c.nanos.Load()) }

func newPausing(t *testing.T, url string) (*redisstore.Store, *stopped) {
	t.Helper()
	clock := new(stopped)
	s, err := redisstore.New(open(t, url), redisstore.Config{Recovery: 2 * time.Second, Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	return s, clock
}

func TestRestartIsNoticed(t *testing.T) {
	server := redistest.Run(t)
	s, clock := newPausing(t, "redis://"+server.Addr())
	ops := one(100)
	for range 3 {
		if _, err := s.Apply(t.Context(), ops); err != nil {
			t.Fatal(err)
		}
	}
	seen := ops[0].After[0]
	server.Restart()

	// Until the pause is over nothing is admitted; the first exchanges may fail
	// because their connections are gone.
	noticed := false
	for range 10 {
		_, err := s.Apply(t.Context(), one(100))
		if err == nil {
			t.Fatal("a call was admitted by a server that has just restarted")
		}
		noticed = noticed || errors.Is(err, ratelimit.ErrRestarted)
	}
	if !noticed {
		t.Fatal("the restart was not noticed")
	}
	restore := ratelimit.Adjustment{Ref: ratelimit.Ref{Kind: ratelimit.KindKey, ID: "k"}, State: seen}
	if err := s.Adjust(t.Context(), "org_a", []ratelimit.Adjustment{restore}); err != nil {
		t.Fatalf("Adjust during the pause: %v", err)
	}
	if _, err := s.Heartbeat(t.Context(), "gw", time.Minute); err != nil {
		t.Errorf("Beat during the pause: %v", err)
	}
	clock.nanos.Add(int64(2*time.Second) - 1)
	if _, err := s.Apply(t.Context(), one(100)); !errors.Is(err, ratelimit.ErrRestarted) {
		t.Errorf("1 ns before the end of the pause: %v", err)
	}
	clock.nanos.Add(1)
	if _, err := s.Apply(t.Context(), ops); err != nil {
		t.Fatalf("after the pause: %v", err)
	}
	if got := ops[0].After[0].Count[2]; got < 4 {
		t.Errorf("the day counts %d after a restart, want what was restored and this call", got)
	}
}

// The pause ends in time even if the wall clock is set back meanwhile.
func TestPauseWhileTheClockIsSetBack(t *testing.T) {
	var back atomic.Bool
	now := func() time.Time {
		now := time.Now()
		if back.Load() {
			*(*uint64)(unsafe.Pointer(&now)) -= 3600 << 30 // the seconds of the wall clock; package time cannot set it alone
		}
		return now
	}
	server := redistest.Run(t)
	s, err := redisstore.New(open(t, "redis://"+server.Addr()), redisstore.Config{Recovery: time.Second, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(t.Context(), one(100)); err != nil {
		t.Fatal(err)
	}
	server.Restart()
	for !errors.Is(err, ratelimit.ErrRestarted) {
		if _, err = s.Apply(t.Context(), one(100)); err == nil {
			t.Fatal("the restart was not noticed")
		}
	}
	back.Store(true)
	for end := time.Now().Add(20 * time.Second); err != nil; {
		if _, err = s.Apply(t.Context(), one(100)); err != nil && time.Now().After(end) {
			t.Fatalf("the pause of a second has not ended: %v", err)
		}
	}
}

func TestBeatNoticesARestart(t *testing.T) {
	server := redistest.Run(t)
	s, _ := newPausing(t, "redis://"+server.Addr())
	if _, err := s.Heartbeat(t.Context(), "gw", time.Minute); err != nil {
		t.Fatal(err)
	}
	server.Restart()
	for range 3 {
		if _, err := s.Heartbeat(t.Context(), "gw", time.Minute); errors.Is(err, ratelimit.ErrRestarted) {
			return
		}
	}
	t.Error("three beats did not notice a restart")
}

func TestNewConnectionsAreNoRestart(t *testing.T) {
	client := open(t, "redis://"+redistest.Start(t))
	s := newStore(t, client)
	for range 5 {
		if _, err := s.Apply(t.Context(), one(100)); err != nil {
			t.Fatal(err)
		}
		// The server drops all connections; the store finds that out on its next
		// exchange, which may fail, and must then go on as before.
		if err := client.Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no").Err(); err != nil {
			t.Logf("kill: %v", err)
		}
		if _, err := s.Apply(t.Context(), one(100)); errors.Is(err, ratelimit.ErrRestarted) {
			t.Fatal("a new connection was taken for a restart")
		}
	}
}

// TestEmbedded shows that a server that does not identify itself can be used.
func TestEmbedded(t *testing.T) {
	m := miniredis.RunT(t)
	s, _ := newPausing(t, "redis://"+m.Addr())
	if _, err := s.Apply(t.Context(), one(100)); err != nil {
		t.Fatal(err)
	}
	m.Close()
	if err := m.Restart(); err != nil {
		t.Fatal(err)
	}
	_, _ = s.Apply(t.Context(), one(100)) // on a connection that is gone
	if _, err := s.Apply(t.Context(), one(100)); err != nil {
		t.Errorf("after the embedded server was back: %v", err)
	}
}

func TestClusterNodeRestart(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts three servers")
	}
	nodes := redistest.ClusterNodes(t, 3)
	var addrs []string
	for _, n := range nodes {
		addrs = append(addrs, n.Addr())
	}
	s, _ := newPausing(t, "redis+cluster://"+strings.Join(addrs, ","))
	orgs := []string{"a", "b", "c", "d", "e", "f"}
	apply := func(org string) error {
		ops := one(100)
		ops[0].Org = org
		_, err := s.Apply(t.Context(), ops)
		return err
	}
	for _, org := range orgs {
		if err := apply(org); err != nil {
			t.Fatalf("organisation %s: %v", org, err)
		}
	}
	nodes[0].Restart()
	noticed := false
	for range 10 {
		for _, org := range orgs {
			noticed = noticed || errors.Is(apply(org), ratelimit.ErrRestarted)
		}
	}
	if !noticed {
		t.Error("the restart of one node was not noticed")
	}
}

// gateway is a Store of its own with a name to beat under.
type gateway struct {
	*redisstore.Store
	name string
}

func (g *gateway) beat(t *testing.T) {
	t.Helper()
	if _, err := g.Heartbeat(t.Context(), g.name, time.Minute); err != nil {
		t.Fatalf("%s: Beat: %v", g.name, err)
	}
}

// notice beats until the restart has been noticed.
func (g *gateway) notice(t *testing.T) {
	t.Helper()
	for range 10 {
		if _, err := g.Heartbeat(t.Context(), g.name, time.Minute); errors.Is(err, ratelimit.ErrRestarted) {
			return
		}
	}
	t.Fatalf("%s did not notice the restart", g.name)
}

// restore brings back what g saw last.
func (g *gateway) restore(t *testing.T, seen ratelimit.State) {
	t.Helper()
	err := g.Restore(t.Context(), g.name, time.Minute, func(ctx context.Context) error {
		return g.Adjust(ctx, "org_a", []ratelimit.Adjustment{{Ref: ratelimit.Ref{Kind: ratelimit.KindKey, ID: "k"}, State: seen}})
	})
	if err != nil {
		t.Fatalf("%s: Restore: %v", g.name, err)
	}
}

func (g *gateway) take(t *testing.T) ratelimit.State {
	t.Helper()
	ops := one(100)
	if _, err := g.Apply(t.Context(), ops); err != nil {
		t.Fatalf("%s: Apply: %v", g.name, err)
	}
	return ops[0].After[0]
}

func (g *gateway) refuses(t *testing.T, when string) {
	t.Helper()
	if _, err := g.Apply(t.Context(), one(100)); !errors.Is(err, ratelimit.ErrRestarted) {
		t.Errorf("%s, %s: Apply: %v, want ErrRestarted", g.name, when, err)
	}
}

// TestThePauseLastsUntilAllHaveRestored: however slow one gateway is, nobody
// admits before the calls that it alone has seen are counted again, and not longer either.
func TestThePauseLastsUntilAllHaveRestored(t *testing.T) {
	server := redistest.Run(t)
	var quick, slow gateway
	var clock *stopped
	slow.name, quick.name = "slow", "quick"
	slow.Store, _ = newPausing(t, "redis://"+server.Addr())
	quick.Store, clock = newPausing(t, "redis://"+server.Addr())
	early := quick.take(t)
	for range 5 {
		slow.take(t)
	}
	late := slow.take(t)
	quick.beat(t)
	slow.beat(t)
	quick.beat(t) // and hears of slow
	server.Restart()

	quick.notice(t)
	quick.restore(t, early)
	quick.beat(t)
	quick.refuses(t, "while slow has not even noticed")
	slow.notice(t)
	quick.beat(t)
	quick.refuses(t, "while slow has not restored")
	slow.restore(t, late)
	quick.refuses(t, "before it heard of it")
	quick.beat(t)
	quick.refuses(t, "while others may not have been heard yet")
	clock.nanos.Add(int64(redisstore.MinRecovery))
	quick.beat(t)
	if got := quick.take(t).Count[2]; got != 8 {
		t.Errorf("the day counts %d, want the 7 of before the restart and this one", got)
	}
	// The next restart is another: nobody has restored anything to that server.
	server.Restart()
	quick.notice(t)
	quick.beat(t)
	quick.refuses(t, "after the second restart")
}

// TestOneThatNobodyKnewIsWaitedFor: a gateway that started just before a restart is
// waited for, too, if it tells the new server that it is there.
func TestOneThatNobodyKnewIsWaitedFor(t *testing.T) {
	server := redistest.Run(t)
	old, clock := newPausing(t, "redis://"+server.Addr())
	g := gateway{old, "old"}
	g.beat(t)
	fresh, _ := newPausing(t, "redis://"+server.Addr())
	h := gateway{fresh, "fresh"}
	h.take(t)
	seen := h.take(t)
	server.Restart()
	g.notice(t)
	g.restore(t, ratelimit.State{})
	h.notice(t)
	h.beat(t)
	clock.nanos.Add(int64(redisstore.MinRecovery))
	g.beat(t)
	g.refuses(t, "while the fresh one has not restored")
	h.restore(t, seen)
	g.beat(t)
	if got := g.take(t).Count[2]; got != 3 {
		t.Errorf("the day counts %d, want 3", got)
	}
}

// TestOneThatDoesNotComeIsNotWaitedForLong: a gateway that went with the server
// delays the others by Recovery, and no longer.
func TestOneThatDoesNotComeIsNotWaitedForLong(t *testing.T) {
	server := redistest.Run(t)
	left, clock := newPausing(t, "redis://"+server.Addr())
	g := gateway{left, "left"}
	g.beat(t)
	if _, err := g.Heartbeat(t.Context(), "gone", time.Minute); err != nil {
		t.Fatal(err)
	}
	seen := g.take(t)
	server.Restart()
	g.notice(t)
	g.restore(t, seen)
	clock.nanos.Add(int64(2*time.Second) - 1)
	g.beat(t)
	g.refuses(t, "1 ns before the end of the pause")
	clock.nanos.Add(1)
	if got := g.take(t).Count[2]; got != 2 {
		t.Errorf("the day counts %d, want 2", got)
	}
}

// TestLostDataIsNoticed: a server that stays the same process, and knows less than
// before, admits nothing before every gateway has restored its memory.
func TestLostDataIsNoticed(t *testing.T) {
	t.Parallel()
	for name, loss := range map[string]func(t *testing.T, s *redistest.Server) (lose func()){
		"a replica that was behind is promoted": func(_ *testing.T, s *redistest.Server) func() { return s.Mark().RollBack },
		"an operator empties it": func(t *testing.T, s *redistest.Server) func() {
			return func() {
				if err := open(t, "redis://"+s.Addr()).FlushAll(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Run(t)
			a, clock := newPausing(t, "redis://"+server.Addr())
			b, other := newPausing(t, "redis://"+server.Addr())
			g, h := gateway{a, "busy"}, gateway{b, "idle"}
			early := h.take(t)
			g.beat(t)
			h.beat(t)
			g.beat(t) // and hears of the other
			lose := loss(t, server)
			for range 5 {
				g.take(t)
			}
			late := g.take(t)
			lose()

			g.notice(t)
			h.refuses(t, "told of the loss by what the other announced")
			g.refuses(t, "after the loss")
			g.restore(t, late)
			g.beat(t)
			g.refuses(t, "while the other has not restored")
			h.restore(t, early)
			for _, c := range []*stopped{clock, other} {
				c.nanos.Add(int64(redisstore.MinRecovery))
			}
			g.beat(t)
			h.beat(t)
			if got := g.take(t).Count[2]; got != 8 {
				t.Errorf("the day counts %d, want the 7 of before the loss and this one", got)
			}
			if got := h.take(t).Count[2]; got != 9 {
				t.Errorf("the day counts %d, want 9", got)
			}
			// The next loss is another: that all have restored the first is still known.
			mark := server.Mark()
			h.take(t)
			late = g.take(t)
			mark.RollBack()
			g.notice(t)
			g.restore(t, late)
			clock.nanos.Add(int64(redisstore.MinRecovery))
			g.beat(t)
			g.refuses(t, "while the other has not restored the second loss")
		})
	}
}

// TestPositionsAreForgotten: the table of positions does not grow with the gateways
// that there have been, and one that was silent for days has lost nothing.
func TestPositionsAreForgotten(t *testing.T) {
	m := miniredis.RunT(t)
	now := time.Unix(1_800_000_000, 0)
	s, clock := newPausing(t, "redis://"+m.Addr())
	for day := range 5 {
		m.SetTime(now.AddDate(0, 0, day))
		if _, err := newStore(t, open(t, "redis://"+m.Addr())).Apply(t.Context(), one(100)); err != nil {
			t.Fatal(err)
		}
		if day == 0 {
			if _, err := s.Apply(t.Context(), one(100)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if fields, err := m.HKeys("tollgate:rl:positions"); err != nil || len(fields) != 2 {
		t.Errorf("positions of %q are kept (%v), want those of today and yesterday", fields, err)
	}
	clock.nanos.Add(int64(4 * 24 * time.Hour))
	if _, err := s.Apply(t.Context(), one(100)); err != nil {
		t.Errorf("after four silent days: %v", err)
	}
}
