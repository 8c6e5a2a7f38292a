package proof

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// counted is one call in a history: its cost, and its answer.
type counted struct {
	cost      int64
	allowed   bool
	remaining int64
}

// counter is the model: one window of a quota.
func counter(quota int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return int64(0) },
		Step: func(state, input, output any) (bool, any) {
			count, cost, out := state.(int64), input.(int64), output.(counted)
			if count+cost > quota {
				return !out.allowed, count
			}
			return out.allowed && out.remaining == quota-count-cost, count + cost
		},
	}
}

// TestLinearisable shows that exact decisions of two gateways, group commit,
// cached refusals and the told remainders included, are those of some order in
// which each call happens at one instant between its beginning and its end.
func TestLinearisable(t *testing.T) {
	const quota, callers, calls = 150, 6, 25
	client := newClient(t, redistest.Start(t))
	limiters := []*ratelimit.Limiter{newLimiter(t, client, nil), newLimiter(t, client, nil)}
	began := time.Now()
	var mu sync.Mutex
	var history []porcupine.Operation
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for range calls {
				cost := 1 + rand.Int64N(3)
				call := time.Since(began).Nanoseconds()
				d, err := limiters[c%2].Take(t.Context(), dayTake("org_a", quota, cost))
				if err != nil {
					t.Errorf("Take: %v", err)
					return
				}
				op := porcupine.Operation{
					ClientId: c, Input: cost, Call: call, Return: time.Since(began).Nanoseconds(),
					Output: counted{cost, d.Allowed, d.Windows[0].Remaining},
				}
				mu.Lock()
				history = append(history, op)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(history) != callers*calls {
		t.Fatalf("%d of %d calls have an answer", len(history), callers*calls)
	}
	if got := porcupine.CheckOperationsTimeout(counter(quota), history, time.Minute); got != porcupine.Ok {
		t.Errorf("the history of %d calls is %s", len(history), got)
	}
	// The check can fail: two calls that were told the same remainder.
	altered := append([]porcupine.Operation(nil), history...)
	for i := range altered {
		if out := altered[i].Output.(counted); out.allowed {
			out.remaining++
			altered[i].Output = out
			break
		}
	}
	if porcupine.CheckOperations(counter(quota), altered) {
		t.Error("an altered history passes as well: the check shows nothing")
	}
}

// TestDemoTiny is the smallest story: five calls a minute, two gateways, one
// Redis. With any interleaving, five are answered, the count goes down, and
// the sixth is told when to come back.
func TestDemoTiny(t *testing.T) {
	client := newClient(t, redistest.Start(t))
	limiters := []*ratelimit.Limiter{newLimiter(t, client, nil), newLimiter(t, client, nil)}
	take := ratelimit.Take{Org: "org_demo", Class: ratelimit.ClassRead, Scopes: []ratelimit.Scope{
		{Kind: ratelimit.KindKey, ID: "tg_demo_tiny", Limit: ratelimit.Limit{Minute: 5}},
	}}
	now, err := client.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	if left := now.Truncate(time.Minute).Add(time.Minute).Sub(now); left < 3*time.Second {
		turned := time.NewTimer(left)
		defer turned.Stop()
		<-turned.C
	}
	var mu sync.Mutex
	seen := make(map[int64]int)
	refused := 0
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			d, err := limiters[i%2].Take(t.Context(), take)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				t.Errorf("Take: %v", err)
			case d.Allowed:
				seen[d.Windows[0].Remaining]++
			default:
				refused++
				if reset := d.Windows[0].Reset; d.RetryAfter != reset || reset <= 0 || reset > time.Minute {
					t.Errorf("retry after %v, reset %v", d.RetryAfter, reset)
				}
			}
		})
	}
	wg.Wait()
	for r := range int64(5) {
		if seen[r] != 1 {
			t.Errorf("remaining %d was told %d times, want once", r, seen[r])
		}
	}
	if refused != 7 {
		t.Errorf("%d of 12 calls were refused, want 7", refused)
	}
}

func newClient(t testing.TB, addr string) redisstore.Client {
	t.Helper()
	client, err := redisstore.Open("redis://"+addr, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func newLimiter(t testing.TB, client redisstore.Client, change func(*ratelimit.Config)) *ratelimit.Limiter {
	t.Helper()
	store, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	config := ratelimit.DefaultConfig()
	config.Timeout = 5 * time.Second
	if change != nil {
		change(&config)
	}
	l, err := ratelimit.New(config, ratelimit.Deps{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// dayTake is a call with a quota for the day only.
func dayTake(org string, quota, cost int64) ratelimit.Take {
	return ratelimit.Take{Org: org, Cost: cost, Class: ratelimit.ClassRead, Scopes: []ratelimit.Scope{
		{Kind: ratelimit.KindKey, ID: "k", Limit: ratelimit.Limit{Day: quota}},
	}}
}

// usual is a call as most are: a key, a team and an organisation, each with three
// quotas that are not reached.
func usual(i int) ratelimit.Take {
	large := ratelimit.Limit{Minute: 1e10, Hour: 1e11, Day: 1e12}
	return ratelimit.Take{Org: "org_a", Class: ratelimit.ClassRead, Scopes: []ratelimit.Scope{
		{Kind: ratelimit.KindKey, ID: "key_" + strconv.Itoa(i%8), Limit: large},
		{Kind: ratelimit.KindTeam, ID: "team_" + strconv.Itoa(i%2), Limit: large},
		{Kind: ratelimit.KindOrg, ID: "org_a", Limit: large},
	}}
}
