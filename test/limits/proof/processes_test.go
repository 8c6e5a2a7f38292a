package proof

import (
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// gateways is the number of gateway processes.
const gateways = 8

// roomForDay is what must be left of the day, so that its quota is not renewed in
// the middle of a test.
const roomForDay = 5 * time.Minute

// scene is a Redis behind a relay, and gateway processes that use it.
type scene struct {
	t       *testing.T
	server  *redistest.Server
	relay   *redistest.Relay
	direct  redistest.Conn
	order   order
	running []*gateway
	all     []*gateway
	// killed is how many gateways were, deserted how many of those together with Redis,
	// began when the first one started.
	killed   int
	deserted int
	began    time.Time
}

func newScene(t *testing.T, mode ratelimit.Mode, redisArgs ...string) *scene {
	t.Helper()
	if testing.Short() {
		t.Skip("starts many processes")
	}
	now := time.Now().UTC()
	if now.Truncate(24*time.Hour).Add(24*time.Hour).Sub(now) < roomForDay {
		t.Skip("the day, whose quota this test counts on, is about to end")
	}
	s := &scene{t: t, server: redistest.Run(t, redisArgs...), began: now}
	s.relay = redistest.NewRelay(t, s.server.Addr())
	s.direct = redistest.Client(t, s.server.Addr())
	s.order = order{
		URL: "redis://" + s.relay.Addr(), Mode: mode, Recovery: 1500 * time.Millisecond,
		Callers: 8, Every: 20 * time.Millisecond,
		Quotas: map[string]int64{"k1": 3500, "k2": 6000, "org": 8000},
	}
	return s
}

func (s *scene) start(n int) {
	s.t.Helper()
	for range n {
		g := s.order.start(s.t)
		s.running = append(s.running, g)
		s.all = append(s.all, g)
	}
}

// crash kills a gateway process and starts another.
func (s *scene) crash() {
	s.t.Helper()
	s.running[0].kill()
	s.killed++
	s.running = s.running[1:]
	s.start(1)
}

func (s *scene) stop() {
	s.t.Helper()
	for _, g := range s.running {
		g.stop()
	}
	s.running = nil
}

// wait lets the gateways work for a while.
func (s *scene) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.t.Context().Done():
	}
}

// waitForAll waits until every gateway has told that it is alive.
func (s *scene) waitForAll() {
	for range 600 {
		alive, err := s.direct.ZCard(s.t.Context(), redisstore.DefaultPrefix+"gateways").Result()
		if err == nil && alive == gateways {
			return
		}
		s.wait(100 * time.Millisecond)
	}
	s.t.Fatal("the gateways never were alive together")
}

// waitForMore waits until something more has been admitted.
func (s *scene) waitForMore() {
	s.t.Helper()
	before, _ := sums(s.all)
	for range 600 {
		if now, _ := sums(s.all); now["org"] > before["org"] {
			return
		}
		s.wait(50 * time.Millisecond)
	}
	s.t.Fatal("nothing more was admitted")
}

// waitFor waits until no more has been admitted for a while, or too long; before the
// first admission it waits as long as it takes to start so many processes.
func (s *scene) waitFor(most time.Duration) {
	const quiet, startUp = 5 * time.Second, 2 * time.Minute
	last, began := int64(0), time.Now()
	for since := began; time.Since(began) < most || last == 0 && time.Since(began) < startUp; s.wait(200 * time.Millisecond) {
		now, _ := sums(s.all)
		if now["org"] != last {
			last, since = now["org"], time.Now()
		}
		if last > 0 && time.Since(since) >= quiet {
			return
		}
	}
}

// charged is what Redis counts for a day, by scope, and what gateways that are gone
// said they held of it.
func (s *scene) charged() (charged, held map[string]int64) {
	s.t.Helper()
	client, err := redisstore.Open("redis://"+s.server.Addr(), time.Minute)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	store, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		s.t.Fatal(err)
	}
	snap, err := store.Snapshot(s.t.Context(), "org_a")
	if err != nil {
		s.t.Fatal(err)
	}
	charged, held = make(map[string]int64), make(map[string]int64)
	for _, scope := range snap.Scopes {
		charged[scope.Ref.ID] = scope.State.Count[2]
		for _, lease := range scope.Leases {
			if lease.Index[2] == scope.State.Index[2] {
				held[scope.Ref.ID] += lease.Held[2]
			}
		}
	}
	return charged, held
}

// unseen is the most units of one scope that can be charged without anybody
// accounting for them: the units that a gateway had under way when it was killed, a
// call of each caller and, leased, one block; calls charged to a minute that turned
// while they were under way, which are made again; and the units charged for a gateway that
// was lost together with Redis, all units admitted since the beat before its last: on a busy
// machine, that is two beats.
func (s *scene) unseen() int64 {
	callers := int64(s.order.Callers)
	block := int64(0)
	if s.order.Mode == ratelimit.ModeLeased {
		block = callers * int64(ratelimit.DefaultConfig().Lease.Horizon/s.order.Every)
	}
	turns := time.Now().Unix()/60 - s.began.Unix()/60
	beats := 2 * gateways * callers * int64(ratelimit.HeartbeatInterval/s.order.Every)
	return int64(s.killed)*(callers+block) + turns*gateways*callers + int64(s.deserted)*beats
}

// judge compares the admitted calls with the quotas and with the charges: not
// one call too many, and no unit charged in vain that is not accounted for.
func (s *scene) judge() map[string]int64 {
	s.t.Helper()
	got, lost := sums(s.all)
	charged, held := s.charged()
	for scope, quota := range s.order.Quotas {
		s.t.Logf("%s: quota %d, admitted %d, charged %d; at most %d lost with answers, %d with gateways, %d unseen",
			scope, quota, got[scope], charged[scope], lost[scope], held[scope], s.unseen())
		if most := got[scope] + lost[scope] + held[scope] + s.unseen(); charged[scope] > most {
			s.t.Errorf("%s: charged %d, but only %d are accounted for", scope, charged[scope], most)
		}
		if got[scope] > quota {
			s.t.Errorf("%s: admitted %d of %d", scope, got[scope], quota)
		}
		if got[scope] > charged[scope] {
			s.t.Errorf("%s: admitted %d, but only %d were charged", scope, got[scope], charged[scope])
		}
	}
	if got["org"] == 0 {
		s.t.Error("nothing was admitted")
	}
	return got
}

func eachMode(t *testing.T, run func(*testing.T, ratelimit.Mode)) {
	for _, mode := range []ratelimit.Mode{ratelimit.ModeExact, ratelimit.ModeLeased} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			run(t, mode)
		})
	}
}

// TestQuotaIsUsedUp shows that without faults, and with every gateway asked,
// exactly the quota is admitted in both modes.
func TestQuotaIsUsedUp(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode ratelimit.Mode) {
		s := newScene(t, mode)
		s.order.Quotas = map[string]int64{"k1": 2000, "k2": 2500, "org": 4000}
		s.order.Timeout = 30 * time.Second // no answer is given up, however busy the machine
		s.start(gateways)
		for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); s.wait(200 * time.Millisecond) {
			if now, _ := sums(s.all); now["org"] >= 4000 {
				break
			}
		}
		s.waitFor(10 * time.Second) // what comes on top would show
		s.stop()
		got := s.judge()
		if got["org"] != 4000 {
			t.Errorf("admitted %d, want the whole quota of 4000", got["org"])
		}
	})
}

// TestFaults plays a Redis that restarts with all it was told, slow, cut and lost exchanges,
// lost scripts, and then gateways that crash. The charge for a gateway that is missing when Redis
// comes back is more than this test allows: see [TestGatewayLostWithRedis].
func TestFaults(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode ratelimit.Mode) {
		s := newScene(t, mode, "--appendonly", "yes", "--appendfsync", "always")
		s.order.Recovery = time.Minute // they wait for each other, not for the time to pass
		s.start(gateways)
		s.waitForAll()
		s.wait(time.Second)
		s.server.Kill()
		s.wait(300 * time.Millisecond)
		s.server.Resume()
		s.waitForMore()
		for range 2 {
			for _, fault := range []redistest.Fault{
				{Latency: 40 * time.Millisecond, Jitter: 35 * time.Millisecond},
				{Drop: true, Share: 0.7, End: 60 * time.Millisecond},
				{Drop: true, Share: 0.7, End: 60 * time.Millisecond, Requests: true},
				{Drop: true, End: 20 * time.Millisecond, Reset: true},
				{Bytes: 900},
			} {
				remove := s.relay.Fail(fault)
				s.wait(250 * time.Millisecond)
				remove()
				s.wait(150 * time.Millisecond)
				if err := s.direct.ScriptFlush(t.Context()).Err(); err != nil {
					t.Errorf("script flush: %v", err)
				}
			}
			s.crash()
			s.wait(300 * time.Millisecond)
			s.crash()
		}
		s.waitFor(20 * time.Second)
		s.stop()
		s.judge()
	})
}

// TestRestartWithoutPersistence kills a Redis that keeps nothing: the gateways
// restore their memory before anything is admitted again.
func TestRestartWithoutPersistence(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode ratelimit.Mode) {
		s := newScene(t, mode)
		// All gateways live on, so they wait for each other, not for the time to
		// pass, however busy the machine.
		s.order.Recovery, s.order.Forgets = time.Minute, true
		s.start(gateways)
		s.waitForAll()
		for range 2 {
			s.wait(time.Second)
			s.server.Kill()
			s.wait(200 * time.Millisecond)
			s.server.Resume()
			s.wait(2 * time.Second)
		}
		s.waitFor(20 * time.Second)
		s.stop()
		s.judge()
	})
}

// TestGatewayLostWithRedis kills a Redis that keeps nothing and a gateway at the same
// instant, so that nobody restores what only that one knew.
func TestGatewayLostWithRedis(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode ratelimit.Mode) {
		s := newScene(t, mode)
		s.order.Forgets = true
		s.start(gateways)
		s.waitForAll()
		s.wait(time.Second)
		s.server.Kill()
		s.running[0].kill()
		s.killed, s.deserted = s.killed+1, s.deserted+1
		s.running = s.running[1:]
		s.wait(200 * time.Millisecond)
		s.server.Resume()
		s.waitFor(20 * time.Second)
		s.stop()
		s.judge()
	})
}

// TestFrozenRedis stops Redis from answering without closing its connections, so
// that many exchanges are sent and none is answered, and lets it go on.
func TestFrozenRedis(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode ratelimit.Mode) {
		s := newScene(t, mode)
		s.start(gateways)
		for range 3 {
			s.wait(700 * time.Millisecond)
			s.server.Freeze()
			s.wait(700 * time.Millisecond)
			s.server.Thaw()
		}
		s.waitFor(20 * time.Second)
		s.stop()
		s.judge()
	})
}
