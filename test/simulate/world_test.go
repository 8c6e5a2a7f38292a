package simulate

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/test/limits/storetest"
)

// region is where gateways are.
type region struct {
	name     string
	gateways int
	// rtt is the mean round trip to the region of the store. Each exchange takes up to
	// a tenth more or less.
	rtt time.Duration
	// before and after are the parts of all calls that come in here, in the first and the
	// second half: demand moves on.
	before, after float64
}

// regions returns those of the simulation. Round trips are averages as measured between
// N. Virginia, Ireland and Tokyo; half a millisecond is that of one region.
func regions(gateways int) []region {
	n := func(part float64) int { return max(1, int(math.Round(part*float64(gateways)))) }
	return []region{
		{"home", n(0.4), 500 * time.Microsecond, 0.6, 0.1},
		{"80 ms away", n(0.3), 80 * time.Millisecond, 0.3, 0.3},
		{"145 ms away", n(0.3), 145 * time.Millisecond, 0.1, 0.6},
	}
}

// strategy is a way to share quotas between regions.
type strategy struct {
	name string
	// change sets how gateways count.
	change func(*ratelimit.Config)
	// shares are the parts of each quota that the regions count by themselves, with a
	// store of their own; nil is one store at home.
	shares []float64
}

// strategies lists those that are compared.
func strategies() []strategy {
	horizon := func(d time.Duration) func(*ratelimit.Config) {
		return func(c *ratelimit.Config) { c.Mode, c.Lease.Horizon = ratelimit.ModeLeased, d }
	}
	return []strategy{
		{"exact, from home", func(*ratelimit.Config) {}, nil},
		{"leases from home, horizon 500 ms", horizon(500 * time.Millisecond), nil},
		{"leases from home, horizon 2 s", horizon(2 * time.Second), nil},
		{"equal shares", horizon(500 * time.Millisecond), []float64{1. / 3, 1. / 3, 1. / 3}},
		{"shares as demand was", horizon(500 * time.Millisecond), []float64{0.6, 0.3, 0.1}},
	}
}

// scale is how large a simulation is.
type scale struct {
	gateways, keys, orgs int
	// rate is calls per second over all gateways, for length, half before a minute turns
	// and half after.
	rate   float64
	length time.Duration
	// key and org are quotas per minute.
	key, org int64
}

// distant is a store that is a round trip away.
type distant struct {
	ratelimit.Store

	rtt time.Duration
}

// way takes half a round trip.
func (d distant) way() { time.Sleep(time.Duration(float64(d.rtt) / 2 * (0.9 + 0.2*rand.Float64()))) }

// Apply implements ratelimit.Store.
func (d distant) Apply(ctx context.Context, ops []ratelimit.Op) (int64, error) {
	d.way()
	defer d.way()
	return d.Store.Apply(ctx, ops)
}

// Adjust implements ratelimit.Store.
func (d distant) Adjust(ctx context.Context, org string, adjustments []ratelimit.Adjustment) error {
	d.way()
	defer d.way()
	return d.Store.Adjust(ctx, org, adjustments)
}

// Leases implements ratelimit.Store.
func (d distant) Leases(ctx context.Context, org string, day int64, scopes []ratelimit.Ref) ([][]ratelimit.LeaseState, error) {
	d.way()
	defer d.way()
	return d.Store.Leases(ctx, org, day, scopes)
}

// Heartbeat implements ratelimit.Store.
func (d distant) Heartbeat(ctx context.Context, gateway string, within time.Duration) (ratelimit.HeartbeatResult, error) {
	d.way()
	defer d.way()
	return d.Store.Heartbeat(ctx, gateway, within)
}

// simulation is one run.
type simulation struct {
	scale
	strategy

	regions []region
	stores  []*storetest.Memory // one for each region, or one
	book    *book
}

// simulate runs a strategy and returns what came of it.
func simulate(t *testing.T, s scale, how strategy) (r result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sim := &simulation{scale: s, strategy: how, regions: regions(s.gateways), book: newBook(s)}
		sim.stores = append(sim.stores, storetest.NewMemory(time.Now))
		for range len(how.shares) - 1 {
			sim.stores = append(sim.stores, storetest.NewMemory(time.Now))
		}
		// A minute turns half way.
		turn := time.Now().Truncate(time.Minute).Add(time.Minute + 2*s.length)
		time.Sleep(time.Until(turn.Truncate(time.Minute).Add(-s.length / 2)))
		sim.run(t)
		r = sim.book.result(how, sim.regions)
		for _, store := range sim.stores {
			r.exchanges += store.Calls()
		}
	})
	return r
}

// run plays all calls at all gateways.
func (s *simulation) run(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var background, calls sync.WaitGroup
	for at, region := range s.regions {
		for n := range region.gateways {
			l := s.limiter(t, at, n)
			background.Go(func() { _ = l.Run(ctx) }) // it never fails
			calls.Go(func() { s.callers(t, l, at, n) })
		}
	}
	calls.Wait()
	stop()
	background.Wait()
}

// limiter is that of gateway n of a region.
func (s *simulation) limiter(t *testing.T, at, n int) *ratelimit.Limiter {
	config := ratelimit.DefaultConfig()
	config.Gateway = fmt.Sprintf("%d-%d", at, n)
	config.Timeout = 10 * time.Second
	s.change(&config)
	store := distant{s.stores[0], s.regions[at].rtt}
	if s.shares != nil {
		store = distant{s.stores[at], s.regions[0].rtt}
	}
	l, err := ratelimit.New(config, ratelimit.Deps{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// callers are those of one gateway. They call at random times, whatever became of
// earlier calls.
func (s *simulation) callers(t *testing.T, l *ratelimit.Limiter, at, n int) {
	random := rand.New(rand.NewPCG(uint64(at), uint64(n)))
	home := rand.NewZipf(random, 1.2, 4, uint64(s.keys/len(s.regions)-1))
	region := s.regions[at]
	begin := time.Now()
	var calls sync.WaitGroup
	defer calls.Wait()
	for {
		part := region.before
		if time.Since(begin) > s.length/2 {
			part = region.after
		}
		mean := float64(region.gateways) / (s.rate * part)
		time.Sleep(time.Duration(random.ExpFloat64() * mean * float64(time.Second)))
		if time.Since(begin) > s.length {
			return
		}
		// A key has most of its calls in every region that is busy, and is busiest in one.
		of := at
		if random.Float64() < 0.5 {
			of = random.IntN(len(s.regions))
		}
		key := int(home.Uint64())*len(s.regions) + of
		calls.Go(func() { s.call(t, l, at, key) })
	}
}

// call makes a call of a key.
func (s *simulation) call(t *testing.T, l *ratelimit.Limiter, at, key int) {
	share := 1.0
	if s.shares != nil {
		share = s.shares[at]
	}
	org := key % s.orgs
	c := call{region: at, key: key, org: org, begin: time.Now()}
	s.book.offered(&c)
	d, err := l.Take(t.Context(), ratelimit.Take{Org: "org_" + strconv.Itoa(org), Class: ratelimit.ClassRead, Scopes: []ratelimit.Scope{
		{Kind: ratelimit.KindKey, ID: "k" + strconv.Itoa(key), Limit: ratelimit.Limit{Minute: int64(share * float64(s.key))}},
		{Kind: ratelimit.KindOrg, ID: "org_" + strconv.Itoa(org), Limit: ratelimit.Limit{Minute: int64(share * float64(s.org))}},
	}})
	if err != nil {
		t.Error(err)
		return
	}
	c.admitted, c.end = d.Allowed, time.Now()
	s.book.answered(&c)
}
