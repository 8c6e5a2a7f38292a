package ratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	"github.com/tollgate-dev/tollgate/test/limits/storetest"
)

// stepped are gateways counting leased over one store, whose clock steps while
// theirs run on.
type stepped struct {
	store, gateways *manual
	gates           []*ratelimit.Limiter
}

// newStepped puts gateways on a store whose clock is store.
func newStepped(t *testing.T, gateways *manual, clock *manual, store ratelimit.Store) *stepped {
	t.Helper()
	s := &stepped{store: clock, gateways: gateways}
	for i := range 3 {
		config := ratelimit.DefaultConfig()
		// A name, because the order in which a store answers may depend on it.
		config.Mode, config.Gateway, config.Timeout = ratelimit.ModeLeased, fmt.Sprintf("gw%d", i), 10*time.Second
		l, err := ratelimit.New(config, ratelimit.Deps{Store: store, Now: gateways.Now})
		if err != nil {
			t.Fatal(err)
		}
		l.SetLive(3)
		s.gates = append(s.gates, l)
	}
	return s
}

// held is the number of permits of window w that all gateways hold.
func (s *stepped) held(w int) int64 {
	var sum int64
	for _, g := range s.gates {
		sum += g.HeldOf(w)
	}
	return sum
}

// steps are the possible steps of a clock. The short ones, while calls are made, are most.
func steps() []time.Duration {
	return []time.Duration{
		0, 20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond, time.Second,
		20 * time.Second, time.Minute, 2 * time.Hour, // forward
		-time.Second, -90 * time.Second, -3 * time.Hour, // back
	}
}

// TestLeasedClockSteps moves the clock of Redis back and forth under gateways that
// count leased. A step back opens nothing again. A step forward lets gateways spend
// permits of the window before in the next one, and no others: a window admits at
// most its quota and the permits held when it began. The same history on the model
// must go the same way, decision by decision.
func TestLeasedClockSteps(t *testing.T) {
	t.Parallel()
	var seen struct{ leased, refused, carried, back, forward int }
	for seed := range uint64(6) {
		gatewayClock := newManual()
		redisClock, modelClock := newManual(), newManual()
		server := miniredis.RunT(t)
		server.SetTime(redisClock.Now())
		client, err := redisstore.Open("redis://"+server.Addr(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		store, err := redisstore.New(client, redisstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		redisGates := newStepped(t, gatewayClock, redisClock, store)
		model := newStepped(t, gatewayClock, modelClock, storetest.NewMemory(modelClock.Now))
		tk := only(ratelimit.Limit{Minute: 200, Hour: 700, Day: 1500})
		random := rand.New(rand.NewPCG(seed, 1))
		admitted, carried := map[string]int64{}, map[string]int64{}
		var last [ratelimit.Windows]int64
		for burst := range 60 {
			all := steps()
			step := all[random.IntN(len(all))]
			if random.IntN(2) == 0 {
				step = all[random.IntN(5)] // otherwise there is too little time to lease anything
			}
			redisClock.Add(step)
			modelClock.Add(step)
			server.SetTime(redisClock.Now())
			gatewayClock.Add(max(0, min(step, time.Second)))
			switch {
			case step < 0:
				seen.back++
			case step > time.Second:
				seen.forward++
			}
			for w := range ratelimit.Windows {
				if now := redisClock.Now().UnixNano() / int64(ratelimit.WindowSize(w)); now > last[w] {
					last[w] = now
					carried[name(w, now)] = redisGates.held(w)
					seen.carried += int(redisGates.held(w))
				}
			}
			for call := range 1 + random.IntN(40) {
				g := random.IntN(len(redisGates.gates))
				got, err := redisGates.gates[g].Take(t.Context(), tk)
				if err != nil {
					t.Fatal(err)
				}
				want, err := model.gates[g].Take(t.Context(), tk)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("seed %d, burst %d, call %d: Redis decides otherwise than the model (-model +Redis):\n%s", seed, burst, call, diff)
				}
				if got.Source == ratelimit.SourceLease {
					seen.leased++
				}
				if !got.Allowed {
					seen.refused++
					continue
				}
				for w := range ratelimit.Windows {
					at, quota := name(w, last[w]), tk.Scopes[0].Limit.Quota(w)
					if admitted[at]++; admitted[at] > quota+carried[at] {
						t.Fatalf("seed %d, burst %d: %s admitted %d, want at most %d and the %d held when it began",
							seed, burst, at, admitted[at], quota, carried[at])
					}
				}
			}
		}
	}
	t.Logf("%+v", seen)
	if seen.leased < 500 || seen.refused < 500 || seen.carried < 100 || seen.back < 20 || seen.forward < 20 {
		t.Errorf("the histories show little: %+v", seen)
	}
}

func name(w int, index int64) string { return fmt.Sprintf("%s %d", ratelimit.WindowName(w), index) }

// TestClockBackWithinAWindow has no step forward: then no window admits more than
// its quota, permits or not.
func TestClockBackWithinAWindow(t *testing.T) {
	gatewayClock, storeClock := newManual(), newManual()
	s := newStepped(t, gatewayClock, storeClock, storetest.NewMemory(storeClock.Now))
	tk := only(ratelimit.Limit{Minute: 500})
	admitted, leased := 0, 0
	for i := range 3000 {
		gatewayClock.Add(5 * time.Millisecond)
		storeClock.Add(5 * time.Millisecond)
		if i%100 == 99 {
			storeClock.Add(-700 * time.Millisecond) // more than has passed since the last one
		}
		d, err := s.gates[i%3].Take(t.Context(), tk)
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed {
			admitted++
		}
		if d.Source == ratelimit.SourceLease {
			leased++
		}
	}
	if admitted != 500 || leased == 0 {
		t.Errorf("admitted %d, %d of them leased; want 500, some leased", admitted, leased)
	}
}
