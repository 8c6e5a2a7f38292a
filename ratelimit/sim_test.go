package ratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/test/limits/storetest"
)

// simSeconds is the environment variable that asks for the simulation at full
// scale and for so many seconds of virtual time; the exchanges per call in
// docs/ratelimits.md were measured with 4.
const simSeconds = "TOLLGATE_SIM_SECONDS"

// simScale is how large a simulation is.
type simScale struct {
	gateways, keys, orgs int
	// rate is calls per second over all gateways.
	rate   int64
	length time.Duration
	// keyQuota and orgQuota are per minute; a minute turns half way.
	keyQuota, orgQuota int64
}

// simResult holds the counts of one run of the simulation.
type simResult struct {
	calls, admitted, refused int64
	bySource                 map[ratelimit.Source]int64
	exchanges                int64
	// fullest is the largest part of a quota that was admitted.
	fullest float64
}

// simulate offers a skewed load to gateways over one store, in virtual time. It
// begins so that a minute ends in the middle.
func simulate(t *testing.T, sim simScale, change func(*ratelimit.Config)) simResult {
	t.Helper()
	clock := &manual{now: time.Date(2027, 3, 14, 22, 41, 0, 0, time.UTC).Add(-sim.length / 2)}
	store := storetest.NewMemory(clock.Now)
	gates := make([]*ratelimit.Limiter, sim.gateways)
	for i := range gates {
		gates[i] = limiterOn(t, store, clock.Now, change)
		gates[i].SetLive(int64(sim.gateways))
	}
	takes := make([]ratelimit.Take, sim.keys)
	for k := range takes {
		org := "org_" + strconv.Itoa(k%sim.orgs)
		takes[k] = ratelimit.Take{Org: org, Class: ratelimit.ClassRead, Scopes: []ratelimit.Scope{
			{Kind: ratelimit.KindKey, ID: "k" + strconv.Itoa(k), Limit: ratelimit.Limit{Minute: sim.keyQuota, Hour: 1_000_000}},
			{Kind: ratelimit.KindOrg, ID: org, Limit: ratelimit.Limit{Minute: sim.orgQuota, Hour: 2_000_000}},
		}}
	}
	random := rand.New(rand.NewPCG(1, 2))
	keys := rand.NewZipf(random, 1.1, 4, uint64(sim.keys-1))
	type window struct {
		scope  string
		minute int64
	}
	admitted := make(map[window]int64)
	r := simResult{bySource: make(map[ratelimit.Source]int64)}
	for range int64(sim.length.Seconds() * float64(sim.rate)) {
		tk := &takes[keys.Uint64()]
		d, err := gates[random.IntN(sim.gateways)].Take(t.Context(), *tk)
		if err != nil {
			t.Fatal(err)
		}
		r.calls++
		r.bySource[d.Source]++
		if d.Allowed {
			r.admitted++
			minute := clock.now.Unix() / 60
			for _, s := range tk.Scopes {
				admitted[window{s.ID, minute}]++
			}
		} else {
			r.refused++
		}
		clock.now = clock.now.Add(time.Second / time.Duration(sim.rate))
	}
	r.exchanges = store.Calls()
	for w, n := range admitted {
		quota := sim.keyQuota
		if w.scope[0] == 'o' {
			quota = sim.orgQuota
		}
		if n > quota {
			t.Errorf("%s: admitted %d of %d in one minute", w.scope, n, quota)
		}
		r.fullest = max(r.fullest, float64(n)/float64(quota))
	}
	return r
}

// TestSimulation compares the ways of counting at scale. Exact counting is the
// measure: it admits all there is.
func TestSimulation(t *testing.T) {
	t.Parallel()
	sim := simScale{
		gateways: 10, keys: 200, orgs: 20, rate: 100_000, length: time.Second, keyQuota: 3000, orgQuota: 4500,
	}
	if text := os.Getenv(simSeconds); text != "" {
		seconds, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("%s: %v", simSeconds, err)
		}
		sim = simScale{
			gateways: 50, keys: 2000, orgs: 200, rate: 1_000_000, length: time.Duration(seconds) * time.Second,
			keyQuota: 60_000, orgQuota: 90_000,
		}
	} else if testing.Short() {
		t.Skip("a long calculation")
	}
	var exact simResult
	for _, tt := range []struct {
		name   string
		change func(*ratelimit.Config)
		// least is the part of exact counting's admissions that must be admitted,
		// most the exchanges per call allowed.
		least, most float64
	}{
		{"exact", nil, 1, 1},
		{"leased, 100 ms", func(c *ratelimit.Config) { leased(c); c.Lease.Horizon = 100 * time.Millisecond }, 0.97, 0.3},
		{"leased, 500 ms", leased, 0.95, 0.2},
		{"leased, 2 s", func(c *ratelimit.Config) { leased(c); c.Lease.Horizon = 2 * time.Second }, 0.9, 0.18},
	} {
		r := simulate(t, sim, tt.change)
		if tt.name == "exact" {
			exact = r
		}
		part, perCall := float64(r.admitted)/float64(exact.admitted), float64(r.exchanges)/float64(r.calls)
		t.Log(fmt.Sprintf("| %s | %d | %d | %d | %.2f %% | %.4f | %.2f %% |",
			tt.name, r.calls, r.admitted, r.refused, 100*part, perCall, 100*r.fullest), r.bySource)
		if part < tt.least || part > 1 {
			t.Errorf("%s: admitted %.4f of what exact counting does, want %.2f to 1", tt.name, part, tt.least)
		}
		if perCall > tt.most {
			t.Errorf("%s: %.4f exchanges per call, want at most %.2f", tt.name, perCall, tt.most)
		}
	}
}
