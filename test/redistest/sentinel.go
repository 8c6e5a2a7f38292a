package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Group is a master with replicas under one Sentinel, all on loopback. Its
// methods fail the test on error.
type Group struct {
	// Name is the Sentinel's name of the master.
	Name string
	// Sentinel is the process that watches, Master the server that was the
	// master first.
	Sentinel, Master *Server
	Replicas         []*Server
	t                testing.TB
}

// Sentinel starts a master with so many replicas and a Sentinel that knows them
// all, and returns when a failover could begin. The arguments, as those of Run,
// are the master's.
func Sentinel(t testing.TB, replicas int, args ...string) *Group {
	t.Helper()
	g := &Group{t: t, Name: "main", Master: Run(t, args...)}
	host, port, err := net.SplitHostPort(g.Master.Addr())
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	for range replicas {
		g.Replicas = append(g.Replicas, Run(t, "--replicaof", host+" "+port, "--repl-diskless-sync-delay", "0"))
	}
	dir := t.TempDir()
	g.Sentinel = launch(t, readySentinel, func(own int) []string {
		file := filepath.Join(dir, fmt.Sprintf("sentinel-%d.conf", own))
		text := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor %s %s %s 1\n"+
			"sentinel down-after-milliseconds %s 1000\nsentinel failover-timeout %s 10000\n",
			own, dir, g.Name, host, port, g.Name, g.Name)
		// It writes its findings into its own file.
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatalf("redistest: %v", err)
		}
		return []string{file, "--sentinel"}
	})
	g.until("the replicas follow", func(ctx context.Context, c *redis.SentinelClient) error {
		list, err := c.Replicas(ctx, g.Name).Result()
		if err != nil {
			return err
		}
		following := 0
		for _, r := range list {
			if r["flags"] == "slave" && r["master-link-status"] == "ok" {
				following++
			}
		}
		if following != replicas {
			return fmt.Errorf("%d of %d do", following, replicas)
		}
		return nil
	})
	return g
}

// URL is the address as redisstore.Options reads it.
func (g *Group) URL() string { return "redis+sentinel://" + g.Sentinel.Addr() + "/" + g.Name }

// Addr is the address of the master now.
func (g *Group) Addr() string {
	g.t.Helper()
	var addr string
	g.until("there is a master", func(ctx context.Context, c *redis.SentinelClient) error {
		var err error
		addr, err = address(ctx, c, g.Name)
		return err
	})
	return addr
}

// Failover makes a replica the master, as an operator would, and returns when the
// Sentinel tells its address.
func (g *Group) Failover() {
	g.t.Helper()
	was := g.Addr()
	g.until("a failover begins", func(ctx context.Context, c *redis.SentinelClient) error {
		return c.Failover(ctx, g.Name).Err()
	})
	g.until("a replica is master", func(ctx context.Context, c *redis.SentinelClient) error {
		is, err := address(ctx, c, g.Name)
		if err == nil && is == was {
			err = errors.New("it is " + was + " still")
		}
		return err
	})
}

func address(ctx context.Context, c *redis.SentinelClient, name string) (string, error) {
	pair, err := c.GetMasterAddrByName(ctx, name).Result()
	if err != nil {
		return "", err
	}
	if len(pair) != 2 {
		return "", fmt.Errorf("the master is %q", pair)
	}
	port, err := strconv.Atoi(pair[1])
	return net.JoinHostPort(pair[0], strconv.Itoa(port)), err
}

// until asks the Sentinel again and again, until there is no error.
func (g *Group) until(what string, ask func(context.Context, *redis.SentinelClient) error) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), formation)
	defer cancel()
	c := redis.NewSentinelClient(&redis.Options{Addr: g.Sentinel.Addr()})
	defer func() { _ = c.Close() }()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		err := ask(ctx, c)
		if err == nil {
			return
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			g.t.Fatalf("redistest: waiting until %s: %v", what, err)
		}
	}
}
