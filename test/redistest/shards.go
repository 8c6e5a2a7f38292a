package redistest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// Shards are the masters of a cluster, and for each of them the replica with the same index. Its
// methods fail the test on error.
type Shards struct {
	Masters, Replicas []*Server
	t                 testing.TB
}

// ClusterShards starts a cluster of n masters with a replica each, and returns when a failover could
// begin. A slot that has no master does not stop the others. Nodes give each other much time until
// [Shards.Failover].
func ClusterShards(t testing.TB, n int) *Shards {
	t.Helper()
	args := []string{"--cluster-require-full-coverage", "no", "--repl-diskless-sync-delay", "0", "--cluster-node-timeout", "60000"}
	s := &Shards{t: t, Masters: ClusterNodes(t, n, args...)}
	ctx, cancel := context.WithTimeout(t.Context(), formation)
	defer cancel()
	first := Client(t, s.Masters[0].Addr())
	for i := range n {
		replica, bus := clusterNode(t, args...)
		s.Replicas = append(s.Replicas, replica)
		host, port, _ := strings.Cut(replica.Addr(), ":")
		if err := first.Do(ctx, "CLUSTER", "MEET", host, port, bus).Err(); err != nil {
			t.Fatalf("redistest: replica %d: %v", i, err)
		}
	}
	for i, r := range s.Replicas {
		c := Client(t, r.Addr())
		s.until(ctx, "all nodes know each other", func() error { return serving(ctx, c, 2*n) })
		if err := c.Do(ctx, "CLUSTER", "REPLICATE", s.id(ctx, s.Masters[i])).Err(); err != nil {
			t.Fatalf("redistest: replica %d: %v", i, err)
		}
	}
	for _, r := range s.Replicas {
		c := Client(t, r.Addr())
		s.until(ctx, "the replicas follow", func() error {
			info, err := c.Info(ctx, "replication").Result()
			if err == nil && !strings.Contains(info, "master_link_status:up") {
				err = fmt.Errorf("%s does not:\n%s", r.Addr(), info)
			}
			return err
		})
	}
	for _, m := range s.Masters {
		c := Client(t, m.Addr())
		s.until(ctx, "the masters know their replicas", func() error {
			nodes, err := c.ClusterNodes(ctx).Result()
			if err == nil && strings.Count(nodes, "slave") != n {
				err = fmt.Errorf("%s knows\n%s", m.Addr(), nodes)
			}
			return err
		})
	}
	return s
}

// URL is the address as redisstore.Options reads it.
func (s *Shards) URL(user string) string {
	addrs := make([]string, len(s.Masters))
	for i, m := range s.Masters {
		addrs[i] = m.Addr()
	}
	return "redis+cluster://" + user + strings.Join(addrs, ",")
}

// Of returns the index of the shard that has a key.
func (s *Shards) Of(key string) int {
	s.t.Helper()
	slot, err := Client(s.t, s.Masters[0].Addr()).ClusterKeySlot(s.t.Context(), key).Result()
	if err != nil {
		s.t.Fatalf("redistest: %v", err)
	}
	for i := range s.Masters {
		if int(slot) < (i+1)*slots/len(s.Masters) {
			return i
		}
	}
	return len(s.Masters) - 1
}

// Failover kills the master of a shard, and returns when its replica has taken its place. Nodes take
// each other for dead after a second from then on.
func (s *Shards) Failover(shard int) {
	s.t.Helper()
	s.Impatient()
	s.Masters[shard].Kill()
	s.promoted(shard)
}

// Promote makes the replica of a shard its master, as an operator would, and the master its replica.
func (s *Shards) Promote(shard int) {
	s.t.Helper()
	if err := Client(s.t, s.Replicas[shard].Addr()).Do(s.t.Context(), "CLUSTER", "FAILOVER").Err(); err != nil {
		s.t.Fatalf("redistest: %v", err)
	}
	s.promoted(shard)
}

// promoted waits until the replica of a shard is a master.
func (s *Shards) promoted(shard int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), formation)
	defer cancel()
	c := Client(s.t, s.Replicas[shard].Addr())
	s.until(ctx, "the replica is promoted", func() error {
		info, err := c.Info(ctx, "replication").Result()
		if err == nil && !strings.Contains(info, "role:master") {
			err = fmt.Errorf("it is not:\n%s", info)
		}
		return err
	})
}

// Impatient makes nodes take each other for dead after a second.
func (s *Shards) Impatient() {
	s.t.Helper()
	for _, node := range slices.Concat(s.Masters, s.Replicas) {
		if err := Client(s.t, node.Addr()).ConfigSet(s.t.Context(), "cluster-node-timeout", "1000").Err(); err != nil {
			s.t.Fatalf("redistest: %v", err)
		}
	}
}

// Move moves the slot of a key, key by key, from a shard to another one. It pauses before each key.
func (s *Shards) Move(key string, from, to int, pause func()) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), formation)
	defer cancel()
	source, target := Client(s.t, s.Masters[from].Addr()), Client(s.t, s.Masters[to].Addr())
	slot, err := source.ClusterKeySlot(ctx, key).Result()
	if err != nil {
		s.t.Fatalf("redistest: %v", err)
	}
	do := func(c Conn, args ...any) {
		s.t.Helper()
		if err := c.Do(ctx, args...).Err(); err != nil {
			s.t.Fatalf("redistest: %v: %v", args, err)
		}
	}
	host, port, _ := strings.Cut(s.Masters[to].Addr(), ":")
	do(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", s.id(ctx, s.Masters[from]))
	do(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", s.id(ctx, s.Masters[to]))
	for {
		keys, err := source.ClusterGetKeysInSlot(ctx, int(slot), 1).Result()
		if err != nil {
			s.t.Fatalf("redistest: %v", err)
		}
		pause()
		if len(keys) == 0 {
			break
		}
		do(source, "MIGRATE", host, port, keys[0], 0, patience.Milliseconds(), "REPLACE")
	}
	for _, c := range []Conn{target, source} {
		do(c, "CLUSTER", "SETSLOT", slot, "NODE", s.id(ctx, s.Masters[to]))
	}
}

func (s *Shards) id(ctx context.Context, node *Server) string {
	s.t.Helper()
	id, err := Client(s.t, node.Addr()).ClusterMyID(ctx).Result()
	if err != nil {
		s.t.Fatalf("redistest: %v", err)
	}
	return id
}

// until asks again and again, until there is no error.
func (s *Shards) until(ctx context.Context, what string, ask func() error) {
	s.t.Helper()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for {
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			s.t.Fatalf("redistest: waiting until %s: %v", what, err)
		}
	}
}
