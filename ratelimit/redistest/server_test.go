package redistest_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/ratelimit/redistest"
)

func TestServer(t *testing.T) {
	s := redistest.Run(t, "--appendonly", "yes", "--appendfsync", "always")
	client := redis.NewClient(&redis.Options{Addr: s.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	if err := client.Set(t.Context(), "kept", "yes", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Restart()
	if got, err := client.Get(t.Context(), "kept").Result(); got != "yes" || err != nil {
		t.Errorf("after a restart kept = %q, %v; want yes, nil", got, err)
	}
}

func TestCluster(t *testing.T) {
	addrs := redistest.Cluster(t, 3)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
	t.Cleanup(func() { _ = client.Close() })
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		if err := client.Set(t.Context(), key, key, 0).Err(); err != nil {
			t.Fatalf("set %s: %v", key, err)
		}
	}
}
