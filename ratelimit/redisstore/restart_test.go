package redisstore_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	"github.com/tollgate-dev/tollgate/ratelimit/redistest"
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
	if _, err := s.Beat(t.Context(), "gw", time.Minute); err != nil {
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

func TestBeatNoticesARestart(t *testing.T) {
	server := redistest.Run(t)
	s, _ := newPausing(t, "redis://"+server.Addr())
	if _, err := s.Beat(t.Context(), "gw", time.Minute); err != nil {
		t.Fatal(err)
	}
	server.Restart()
	for range 3 {
		if _, err := s.Beat(t.Context(), "gw", time.Minute); errors.Is(err, ratelimit.ErrRestarted) {
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

// TestEmbedded shows that a server that does not tell who it is can be used.
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
