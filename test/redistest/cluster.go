package redistest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// slots is the number of slots of a Redis Cluster.
const slots = 16384

// formation bounds how long the nodes of a cluster, or those a Sentinel watches, may
// take to find each other. It is only there to end a test that hangs.
const formation = 2 * time.Minute

// Cluster starts n masters that share the slots evenly, without replicas, and
// returns their addresses once the cluster serves all slots.
func Cluster(t testing.TB, n int) []string {
	t.Helper()
	addrs := make([]string, n)
	for i, s := range ClusterNodes(t, n) {
		addrs[i] = s.Addr()
	}
	return addrs
}

// ClusterNodes is Cluster, for tests that stop and start single nodes. The arguments are, as those
// of Run, each node's.
func ClusterNodes(t testing.TB, n int, args ...string) []*Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), formation)
	defer cancel()
	nodes := make([]*Server, n)
	clients := make([]Conn, n)
	buses := make([]int, n)
	for i := range n {
		nodes[i], buses[i] = clusterNode(t, args...)
		clients[i] = Client(t, nodes[i].Addr())
		if err := clients[i].ClusterAddSlotsRange(ctx, i*slots/n, (i+1)*slots/n-1).Err(); err != nil {
			t.Fatalf("redistest: slots of node %d: %v", i, err)
		}
		if err := clients[i].Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			t.Fatalf("redistest: epoch of node %d: %v", i, err)
		}
	}
	for i := 1; i < n; i++ {
		host, port, _ := strings.Cut(nodes[i].Addr(), ":")
		if err := clients[0].Do(ctx, "CLUSTER", "MEET", host, port, buses[i]).Err(); err != nil {
			t.Fatalf("redistest: node %d: %v", i, err)
		}
	}
	for i, c := range clients {
		if err := serving(ctx, c, n); err != nil {
			t.Fatalf("redistest: node %d: %v", i, err)
		}
	}
	return nodes
}

// clusterNode starts a server in cluster mode and returns it with the port of its
// bus.
func clusterNode(t testing.TB, args ...string) (node *Server, bus int) {
	t.Helper()
	dir := t.TempDir()
	node = launch(t, readyServer, func(port int) []string {
		var err error
		if bus, err = FreePort(); err != nil {
			t.Fatal(err)
		}
		return append(arguments(dir, "--port", strconv.Itoa(port), "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus),
			"--cluster-node-timeout", "5000", "--cluster-config-file", "nodes.conf"), args...)
	})
	return node, bus
}

// serving waits until a node knows n nodes and all slots.
func serving(ctx context.Context, c Conn, n int) error {
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for {
		info, err := c.ClusterInfo(ctx).Result()
		if err != nil {
			return err
		}
		if strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", n)) {
			return nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("the cluster did not form: %w\n%s", ctx.Err(), info)
		}
	}
}
