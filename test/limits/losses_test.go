package limits

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// lossQuota is the quota of a day in these tests.
const lossQuota = 600

// losses are two gateways on default settings whose Redis is lost under load: organisation acme
// has lossQuota reads a day, and probe, whose reads are refused without Redis, has no bound that matters.
type losses struct {
	*fleet

	mu sync.Mutex
	// statuses are those of acme's calls, healthy when each gateway last answered probe without Redis
	// having been away.
	statuses map[int]int
	probes   map[int]int
	healthy  [2]time.Time
	missing  [2]time.Time
}

// newLosses starts the gateways, which wait for Redis as long as timeout (1s is the default), and load that lasts until the returned function is called.
func newLosses(t *testing.T, redisURL, probe, timeout string) (s *losses, stop func()) {
	t.Helper()
	upstream := platform.RunT(t, platform.WithAccounts(platform.Account{ID: "acme", Key: credential, Exempt: true},
		platform.Account{ID: "probe", Key: "platform-key-of-probe", Exempt: true}))
	s = &losses{
		fleet:    &fleet{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}, Timeout: patience}},
		statuses: make(map[int]int), probes: make(map[int]int),
	}
	t.Cleanup(s.client.CloseIdleConnections)
	secret := filepath.Join(t.TempDir(), "probe")
	if err := os.WriteFile(secret, []byte("platform-key-of-probe"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := fmt.Sprintf(`listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
platform: {base_url: %q}
redis: {url: {env: REDIS_URL}}
limits: {timeout: %s}
orgs:
  - id: acme
    credential: {env: ACME_KEY}
    keys: [{id: a, roles: [admin], sha256: %q, limits: {day: %d}}]
  - id: %s
    credential: {file: %q}
    failure: {read: closed}
    keys: [{id: p, roles: [admin], sha256: %q, limits: {day: 1000000}}]
`, upstream.URL, timeout, identity.DigestOf("secret_a").String(), lossQuota, probe, secret, identity.DigestOf("secret_p").String())
	for i := range 2 {
		url, p := serve(t, i, file, redisURL)
		s.gateways, s.processes = append(s.gateways, url), append(s.processes, p)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for g := range s.gateways {
		load.Go(func() { s.every(ctx, 20*time.Millisecond, func() { s.count(ctx, g, "a") }) })
		load.Go(func() { s.every(ctx, 50*time.Millisecond, func() { s.count(ctx, g, "p") }) })
	}
	return s, func() { cancel(); load.Wait() }
}

// every makes calls at an interval, however long each takes, until ctx ends.
func (s *losses) every(ctx context.Context, d time.Duration, call func()) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	var calls sync.WaitGroup
	defer calls.Wait()
	for {
		select {
		case <-tick.C:
			calls.Go(call)
		case <-ctx.Done():
			return
		}
	}
}

// count makes one call and counts its answer.
func (s *losses) count(ctx context.Context, g int, key string) {
	req, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, s.gateways[g]+"/v2/pods", nil)
	if err != nil {
		return
	}
	req.Header.Set("Authorization", "Bearer secret_"+key)
	began := time.Now()
	res, err := s.client.Do(req)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case key == "a":
		s.statuses[res.StatusCode]++
	case res.StatusCode == http.StatusOK:
		s.probes[res.StatusCode]++
		if began.After(s.missing[g]) && (s.healthy[g].IsZero() || s.healthy[g].Before(s.missing[g])) {
			s.healthy[g] = began
		}
	default:
		s.probes[res.StatusCode]++
		s.missing[g] = time.Now()
	}
}

// admitted returns the calls of acme that passed.
func (s *losses) admitted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.statuses[http.StatusOK]
}

// refused returns the calls of acme that were over the quota.
func (s *losses) refused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.statuses[http.StatusTooManyRequests]
}

// back waits until both gateways have refused nothing for want of Redis for a while, and returns how
// long after a time the later one was back.
func (s *losses) back(t *testing.T, since time.Time) time.Duration {
	t.Helper()
	world.Until(t, "both gateways count in Redis again", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for g := range s.gateways {
			if s.missing[g].IsZero() || s.healthy[g].Before(s.missing[g]) || time.Since(s.healthy[g]) < time.Second {
				return false
			}
		}
		return true
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.MaxFunc(s.healthy[:], time.Time.Compare).Sub(since)
}

// until waits until so many calls of acme were admitted.
func (s *losses) until(t *testing.T, n int) {
	t.Helper()
	world.Until(t, fmt.Sprintf("%d calls are admitted", n), func() bool { return s.admitted() >= n })
}

// done uses the quota up, and fails unless at least so many calls of it were admitted, none too many,
// and all of them are on the books of a Redis.
func (s *losses) done(t *testing.T, stop func(), least int, books redistest.Conn) {
	t.Helper()
	refused := s.refused()
	world.Until(t, "the quota is used up", func() bool { return s.refused() > refused+100 })
	stop()
	n := s.admitted()
	t.Logf("admitted %d of %d; answers %v, of the probe %v", n, lossQuota, s.statuses, s.probes)
	if n > lossQuota || n < least {
		t.Errorf("admitted %d of %d, want at least %d", n, lossQuota, least)
	}
	if got := counted(t, books); got < n {
		t.Errorf("Redis counts %d, but %d were admitted", got, n)
	}
}

// counted is acme's count of the day in a Redis.
func counted(t *testing.T, books redistest.Conn) int {
	t.Helper()
	text, err := books.Get(t.Context(), "tollgate:rl:{acme}:key:a").Result()
	if err != nil {
		t.Fatal(err)
	}
	var words []int
	if err := json.Unmarshal([]byte(text), &words); err != nil || len(words) < 7 {
		t.Fatalf("the count is %s: %v", text, err)
	}
	return words[6]
}

// neighbour returns an organisation that is counted where acme is, in a cluster.
func neighbour(c *redistest.Shards) (org string, shard int) {
	shard = c.Of("{acme}")
	for i := 0; ; i++ {
		if org = fmt.Sprintf("probe-%d", i); c.Of("{"+org+"}") == shard {
			return org, shard
		}
	}
}

// TestClusterFailover: the master is killed that counts an organisation. Gateways follow soon after
// its replica has been promoted, and admit not one call too many.
func TestClusterFailover(t *testing.T) {
	t.Parallel()
	c := redistest.ClusterShards(t, 3)
	probe, shard := neighbour(c)
	s, stop := newLosses(t, c.URL(""), probe, "1s")
	s.until(t, 100)
	c.Failover(shard)
	promoted := time.Now()
	took := s.back(t, promoted)
	t.Logf("both gateways are back %s after the promotion", took)
	if took > 15*time.Second {
		t.Errorf("both gateways are back %s after the promotion", took)
	}
	s.done(t, stop, lossQuota*8/10, redistest.Client(t, c.Replicas[shard].Addr()))
}

// TestClusterMasterAndReplicaAreKilled: nobody counts an organisation for a while. At most what was left is
// admitted, and all of it is counted when the master is back, which has lost its data.
func TestClusterMasterAndReplicaAreKilled(t *testing.T) {
	t.Parallel()
	c := redistest.ClusterShards(t, 3)
	probe, shard := neighbour(c)
	s, stop := newLosses(t, c.URL(""), probe, "1s")
	s.until(t, 100)
	c.Replicas[shard].Kill()
	c.Masters[shard].Kill()
	before := s.admitted()
	world.Pause(8 * time.Second) // that is how long they are away
	while := s.admitted() - before
	t.Logf("admitted %d of %d left while they were away", while, lossQuota-before)
	if while > lossQuota-before {
		t.Errorf("admitted %d of %d left while they were away", while, lossQuota-before)
	}
	c.Masters[shard].Resume()
	t.Logf("both gateways are back after %s", s.back(t, time.Now()))
	s.done(t, stop, lossQuota*8/10, redistest.Client(t, c.Masters[shard].Addr()))
}

// TestASlotMoves: while the slot of an organisation moves to another master, its calls are answered as
// ever.
func TestASlotMoves(t *testing.T) {
	t.Parallel()
	c := redistest.ClusterShards(t, 3)
	probe, shard := neighbour(c)
	s, stop := newLosses(t, c.URL(""), probe, "10s") // so that no call fails for want of processor time
	s.until(t, 100)
	to := (shard + 1) % 3
	c.Move("{acme}", shard, to, func() { world.Pause(100 * time.Millisecond) })
	c.Move("{"+probe+"}", shard, to, func() { world.Pause(100 * time.Millisecond) })
	s.done(t, stop, lossQuota, redistest.Client(t, c.Masters[to].Addr()))
	if s.statuses[http.StatusServiceUnavailable]+s.probes[http.StatusServiceUnavailable] > 0 {
		t.Errorf("answers %v, of the probe %v: want no 503", s.statuses, s.probes)
	}
}

// TestSentinelFailover: the master is killed that a Sentinel watches.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	g := redistest.Sentinel(t, 1)
	s, stop := newLosses(t, g.URL(), "probe", "1s")
	s.until(t, 100)
	g.Master.Kill()
	world.Until(t, "the replica is promoted", func() bool { return g.Addr() != g.Master.Addr() })
	t.Logf("both gateways are back %s after the promotion", s.back(t, time.Now()))
	s.done(t, stop, lossQuota*8/10, redistest.Client(t, g.Addr()))
}

// TestARedisIsKilled: the only Redis is killed and comes back empty.
func TestARedisIsKilled(t *testing.T) {
	t.Parallel()
	server := redistest.Run(t)
	s, stop := newLosses(t, "redis://"+server.Addr(), "probe", "1s")
	s.until(t, 100)
	for range 2 {
		server.Kill()
		world.Pause(time.Second) // that is how long it is away
		server.Resume()
		t.Logf("both gateways are back after %s", s.back(t, time.Now()))
	}
	s.done(t, stop, lossQuota*8/10, redistest.Client(t, server.Addr()))
}
