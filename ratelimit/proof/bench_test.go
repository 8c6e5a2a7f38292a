package proof

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/ratelimit/redistest"
)

// BenchmarkTake measures one decision over three scopes of three windows each: by
// this package, exact and leased, and by redis_rate, whose limits have one window
// each, so that the same question takes nine of its calls (it is asked for three
// as well: the windows of one scope).
func BenchmarkTake(b *testing.B) {
	addr := redistest.Start(b)
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("exact/callers=%d", callers), func(b *testing.B) {
			benchLimiter(b, addr, callers, nil)
		})
		b.Run(fmt.Sprintf("exact-alone/callers=%d", callers), func(b *testing.B) {
			benchLimiter(b, addr, callers, func(c *ratelimit.Config) {
				c.Commit = ratelimit.CommitConfig{Flights: 64, Batch: 1}
			})
		})
		b.Run(fmt.Sprintf("leased/callers=%d", callers), func(b *testing.B) {
			benchLimiter(b, addr, callers, func(c *ratelimit.Config) { c.Mode = ratelimit.ModeLeased })
		})
		for _, windows := range []int{3, 9} {
			b.Run(fmt.Sprintf("redis_rate-%d/callers=%d", windows, callers), func(b *testing.B) {
				benchRedisRate(b, addr, callers, windows)
			})
		}
	}
}

// parallel runs call from so many callers, b.N times in all, and reports what
// Redis did for each.
func parallel(b *testing.B, client redis.UniversalClient, callers int, call func(i int) error) {
	b.Helper()
	before := calls(b, client)
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
	b.ReportMetric(float64(calls(b, client)-before)/float64(b.N), "redis-calls/op")
}

// calls is the number of commands Redis was sent from outside for counting.
func calls(b *testing.B, client redis.UniversalClient) int64 {
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

func benchLimiter(b *testing.B, addr string, callers int, change func(*ratelimit.Config)) {
	b.Helper()
	client := newClient(b, addr)
	if err := client.FlushAll(context.Background()).Err(); err != nil {
		b.Fatal(err)
	}
	l := newLimiter(b, client, change)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	takes := make([]ratelimit.Take, 8)
	for i := range takes {
		takes[i] = usual(i)
	}
	parallel(b, client, callers, func(i int) error {
		d, err := l.Take(ctx, takes[i%8])
		if err == nil && !d.Allowed {
			err = fmt.Errorf("refused: %+v", d.Violated)
		}
		return err
	})
	cancel()
	if err := <-done; err != nil {
		b.Error(err)
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
	parallel(b, client, callers, func(int) error {
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
