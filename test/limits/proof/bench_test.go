package proof

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"

	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// BenchmarkTake measures one decision over three scopes of three windows each: by
// this package, exact and leased, and by redis_rate, whose limits have one window
// each, so that the same question takes nine of its calls (it is asked for three
// as well: the windows of one scope).
// CPU time, unlike the time that passes, hardly depends on what else the machine
// does.
func BenchmarkTake(b *testing.B) {
	addr := redistest.Start(b)
	for _, callers := range []int{1, 64} {
		for _, tt := range []struct {
			name   string
			takes  []ratelimit.Take
			change func(*ratelimit.Config)
		}{
			{"leased", oneOrg(), leased},
			{"leased-64-organisations", manyOrgs(), leased},
			{"exact", oneOrg(), nil},
			{"exact-without-groups", oneOrg(), func(c *ratelimit.Config) {
				c.Commit = ratelimit.CommitConfig{MaxInFlight: 64, MaxBatch: 1}
			}},
		} {
			b.Run(fmt.Sprintf("%s/callers=%d", tt.name, callers), func(b *testing.B) {
				benchLimiter(b, addr, callers, tt.takes, tt.change)
			})
		}
		for _, windows := range []int{3, 9} {
			b.Run(fmt.Sprintf("redis_rate-%d-windows/callers=%d", windows, callers), func(b *testing.B) {
				benchRedisRate(b, addr, callers, windows)
			})
		}
	}
}

// leased switches to leased counting.
func leased(c *ratelimit.Config) { c.Mode = ratelimit.ModeLeased }

// oneOrg are the calls of eight keys in two teams of an organisation, which all
// meet at one lock.
func oneOrg() []ratelimit.Take {
	takes := make([]ratelimit.Take, 8)
	for i := range takes {
		takes[i] = usual(i)
	}
	return takes
}

// manyOrgs are the calls of one key each in 64 organisations.
func manyOrgs() []ratelimit.Take {
	takes := make([]ratelimit.Take, 64)
	for i := range takes {
		takes[i] = usual(i)
		takes[i].Org = "org_" + strconv.Itoa(i)
	}
	return takes
}

// most is the largest number of Redis calls a leased decision may take, once there
// have been settled of them.
const (
	most    = 0.02
	settled = 100_000
)

// parallel runs call from so many callers, b.N times in all, and reports what
// Redis did for each. warm is how many calls are made before.
func parallel(b *testing.B, client redisstore.Client, callers, warm int, call func(i int) error) (redisCalls float64) {
	b.Helper()
	for i := range warm {
		if err := call(i); err != nil {
			b.Fatal(err)
		}
	}
	before, used := calls(b, client), cpuTime(b)
	b.ReportAllocs()
	b.ResetTimer()
	var next atomic.Int64
	errs := make(chan error, callers)
	for range callers {
		go func() {
			for {
				i := next.Add(1)
				if i > int64(b.N) {
					errs <- nil
					return
				}
				if err := call(int(i)); err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	for range callers {
		if err := <-errs; err != nil {
			b.Error(err)
		}
	}
	b.StopTimer()
	redisCalls = float64(calls(b, client)-before) / float64(b.N)
	b.ReportMetric(float64(cpuTime(b)-used)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(redisCalls, "redis-calls/op")
	return redisCalls
}

// cpuTime is what this process has used so far.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// calls is the number of commands Redis was sent from outside for counting.
func calls(b *testing.B, client redisstore.Client) int64 {
	b.Helper()
	text, err := client.Info(context.Background(), "commandstats").Result()
	if err != nil {
		b.Fatal(err)
	}
	var sum int64
	for _, name := range []string{"eval", "evalsha"} {
		sum += commandCalls(text, name)
	}
	return sum
}

func benchLimiter(b *testing.B, addr string, callers int, takes []ratelimit.Take, change func(*ratelimit.Config)) {
	b.Helper()
	client := newClient(b, addr)
	if err := client.FlushAll(context.Background()).Err(); err != nil {
		b.Fatal(err)
	}
	mode := ratelimit.ModeExact
	l := newLimiter(b, client, func(c *ratelimit.Config) {
		if change != nil {
			change(c)
		}
		mode = c.Mode
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	redisCalls := parallel(b, client, callers, 10*len(takes), func(i int) error {
		d, err := l.Take(ctx, takes[i%len(takes)])
		if err == nil && !d.Allowed {
			err = fmt.Errorf("refused: %+v", d.Violated)
		}
		return err
	})
	cancel()
	if err := <-done; err != nil {
		b.Error(err)
	}
	if mode == ratelimit.ModeLeased && b.N >= settled && redisCalls > most {
		b.Errorf("%.4f Redis calls for each leased decision, want at most %.2f", redisCalls, most)
	}
}

func benchRedisRate(b *testing.B, addr string, callers, windows int) {
	b.Helper()
	client := newClient(b, addr)
	if err := client.FlushAll(context.Background()).Err(); err != nil {
		b.Fatal(err)
	}
	limiter := redis_rate.NewLimiter(client)
	limits := []redis_rate.Limit{redis_rate.PerMinute(1e9), redis_rate.PerHour(1e9), redis_rate.PerHour(1e9)}
	keys := make([]string, windows)
	for i := range keys {
		keys[i] = fmt.Sprintf("window_%d", i)
	}
	parallel(b, client, callers, 10, func(int) error {
		for w, key := range keys {
			r, err := limiter.Allow(context.Background(), key, limits[w%3])
			if err != nil {
				return err
			}
			if r.Allowed == 0 {
				return fmt.Errorf("refused: %+v", r)
			}
		}
		return nil
	})
}

// BenchmarkRefusal measures a call to a window that is known to be full.
func BenchmarkRefusal(b *testing.B) {
	l := newLimiter(b, newClient(b, redistest.Start(b)), nil)
	take := dayTake("org_a", 1, 1)
	for range 2 {
		if _, err := l.Take(context.Background(), take); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		d, err := l.Take(context.Background(), take)
		if err != nil || d.Source != ratelimit.SourceMemory {
			b.Fatalf("%+v, %v", d, err)
		}
	}
}
