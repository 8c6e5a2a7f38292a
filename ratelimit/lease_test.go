package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/test/limits/storetest"
)

func leased(c *ratelimit.Config) { c.Mode = ratelimit.ModeLeased }

// busy is a call of a caller with large quotas.
func busy() ratelimit.Take {
	return ratelimit.Take{Org: "org_a", Class: ratelimit.ClassRead, Scopes: []ratelimit.Scope{
		{Kind: ratelimit.KindKey, ID: "k1", Limit: ratelimit.Limit{Minute: 100_000, Hour: 1_000_000}},
		{Kind: ratelimit.KindOrg, ID: "org_a", Limit: ratelimit.Limit{Minute: 200_000, Day: 5_000_000}},
	}}
}

// drive makes n calls at a steady rate and returns how many were admitted and
// where they were decided.
func drive(t testing.TB, l *ratelimit.Limiter, clock *manual, tk ratelimit.Take, n int, every time.Duration) (int, map[ratelimit.Source]int) {
	t.Helper()
	admitted, sources := 0, make(map[ratelimit.Source]int)
	for range n {
		d := take(t, l, tk)
		sources[d.Source]++
		if d.Allowed {
			admitted++
		}
		clock.Add(every)
	}
	return admitted, sources
}

func TestLeaseSparesTheStore(t *testing.T) {
	l, store, clock := newLimiter(t, leased)
	drive(t, l, clock, busy(), 2000, 100*time.Microsecond)
	before := store.Calls()
	const calls = 50_000
	admitted, sources := drive(t, l, clock, busy(), calls, 100*time.Microsecond)
	if admitted != calls {
		t.Errorf("admitted %d of %d", admitted, calls)
	}
	if asked := store.Calls() - before; asked > calls/1000 {
		t.Errorf("asked the store %d times for %d calls (%v)", asked, calls, sources)
	}
	// The remaining count is right although the store was not asked: only this
	// gateway spends.
	if got, want := take(t, l, busy()).Windows[0].Remaining, int64(100_000-2000-calls-1); got != want {
		t.Errorf("remaining of the minute = %d, want %d", got, want)
	}
}

func TestLeaseAdmitsTheWholeQuota(t *testing.T) {
	l, store, clock := newLimiter(t, leased)
	tk := busy()
	tk.Scopes[0].Limit = ratelimit.Limit{Minute: 1000}
	admitted, sources := drive(t, l, clock, tk, 3000, time.Millisecond)
	if admitted != 1000 {
		t.Errorf("a lone gateway admitted %d, want 1000", admitted)
	}
	if sources[ratelimit.SourceLease] < 500 || sources[ratelimit.SourceMemory] < 1900 {
		t.Errorf("sources = %v, want most calls decided here", sources)
	}
	if store.Calls() > 300 {
		t.Errorf("asked the store %d times for 3000 calls", store.Calls())
	}
}

func TestLeaseDiesWithItsWindow(t *testing.T) {
	l, _, clock := newLimiter(t, leased)
	tk := busy()
	tk.Scopes = tk.Scopes[:1]
	tk.Scopes[0].Limit = ratelimit.Limit{Minute: 1000, Hour: 1500}
	first, _ := drive(t, l, clock, tk, 900, time.Millisecond)
	clock.Add(42 * time.Second) // into the next minute
	second, _ := drive(t, l, clock, tk, 900, time.Millisecond)
	if first != 900 || second != 600 {
		t.Errorf("admitted %d and %d, want 900 and 600: permits of the hour stay good", first, second)
	}
}

func TestLoweredQuotaHoldsForPermitsDrawn(t *testing.T) {
	l, _, clock := newLimiter(t, leased)
	tk := busy()
	tk.Scopes[0].Limit = ratelimit.Limit{Minute: 1000}
	drive(t, l, clock, tk, 200, time.Millisecond)
	tk.Scopes[0].Limit = ratelimit.Limit{Minute: 100}
	if d := take(t, l, tk); d.Allowed {
		t.Errorf("admitted past a quota of 100 after 200 calls: %+v", d)
	}
	tk.Scopes[0].Limit = ratelimit.Limit{Minute: 2000}
	if admitted, _ := drive(t, l, clock, tk, 3000, time.Millisecond); admitted < 1700 || admitted > 1800 {
		t.Errorf("admitted %d more under a quota of 2000, want nearly 1800", admitted)
	}
}

func TestCostlyCallUsesPermitsAndStore(t *testing.T) {
	l, _, clock := newLimiter(t, leased)
	tk := busy()
	tk.Scopes = tk.Scopes[:1]
	tk.Scopes[0].Limit = ratelimit.Limit{Minute: 1000}
	drive(t, l, clock, tk, 500, time.Millisecond)
	tk.Cost = 500
	d := take(t, l, tk)
	if !d.Allowed || d.Windows[0].Remaining != 0 {
		t.Errorf("a call that needs all that is left, leased or not: %+v", d)
	}
	tk.Cost = 1
	if d := take(t, l, tk); d.Allowed {
		t.Error("one more was admitted")
	}
}

func TestResetDropsPermits(t *testing.T) {
	l, _, clock := newLimiter(t, leased)
	tk := busy()
	tk.Scopes = tk.Scopes[:1]
	tk.Scopes[0].Limit = ratelimit.Limit{Minute: 1000}
	drive(t, l, clock, tk, 1500, time.Millisecond)
	if err := l.Reset(t.Context(), "org_a", ratelimit.Ref{}); err != nil {
		t.Fatal(err)
	}
	if admitted, _ := drive(t, l, clock, tk, 1500, time.Millisecond); admitted != 1000 {
		t.Errorf("admitted %d after a reset, want 1000", admitted)
	}
}

func TestShow(t *testing.T) {
	l, _, clock := newLimiter(t, func(c *ratelimit.Config) { leased(c); c.Gateway = "gw-1" })
	tk := busy()
	tk.Scopes = tk.Scopes[:1]
	tk.Scopes[0].Limit = ratelimit.Limit{Minute: 1000, Hour: 2000}
	drive(t, l, clock, tk, 200, time.Millisecond)
	got, err := l.Show(t.Context(), "org_a")
	if err != nil {
		t.Fatal(err)
	}
	held := int64(0)
	for _, w := range got {
		for _, lease := range w.Leases {
			if lease.Gateway != "gw-1" {
				t.Errorf("lease of %s", lease.Gateway)
			}
			held = lease.Held
		}
	}
	if len(got) != 3 || held == 0 {
		t.Fatalf("Show = %+v, want three windows with leases", got)
	}
	hour := got[1]
	hour.Leases = nil
	want := ratelimit.WindowState{
		Scope: ratelimit.Ref{Kind: ratelimit.KindKey, ID: "k1"}, Window: "hour", Limit: 2000,
		Used: hour.Used, Remaining: 2000 - hour.Used, Reset: 1182*time.Second - 200*time.Millisecond,
	}
	if diff := cmp.Diff(want, hour); diff != "" {
		t.Errorf("hour (-want +got):\n%s", diff)
	}
	if hour.Used < 200 || hour.Used > 200+held+1 {
		t.Errorf("used = %d after 200 calls with %d held", hour.Used, held)
	}
	if _, err := l.Show(t.Context(), "a b"); !errors.Is(err, ratelimit.ErrInvalid) {
		t.Errorf("Show of an invalid organisation: %v", err)
	}
}

// faulty is a store whose exchanges can be lost on the way there or back.
type faulty struct {
	ratelimit.Store
	clock *manual
	// next says what happens to the next exchange.
	next fault
	// slow is how long an exchange takes, each way; at is when the latest one
	// was at the store.
	slow time.Duration
	at   time.Time
	// before, if not nil, is called once when an exchange reaches the store.
	before func()
}

type fault int

const (
	none fault = iota
	lostRequest
	lostReply
)

var errLost = errors.New("lost")

func (f *faulty) Apply(ctx context.Context, ops []ratelimit.Op) (int64, error) {
	f.clock.Add(f.slow)
	defer f.clock.Add(f.slow)
	f.at = f.clock.Now()
	if before := f.before; before != nil {
		f.before = nil
		before()
	}
	switch f.next {
	case lostRequest:
		return 0, errLost
	case lostReply:
		_, _ = f.Store.Apply(ctx, ops) // the caller does not learn of it
		return 0, errLost
	case none:
	}
	return f.Store.Apply(ctx, ops)
}

// hold lets l lease permits of tk's minute, and returns how many it holds.
func hold(t *testing.T, l *ratelimit.Limiter, clock *manual, tk ratelimit.Take) int64 {
	t.Helper()
	for range 90 {
		take(t, l, tk)
		clock.Add(time.Millisecond)
		if held := l.Held(); held > 0 && held < 20 {
			return held
		}
	}
	t.Fatal("nothing is leased")
	return 0
}

// TestWindowTurnsDuringAnExchange has a costly call bring permits of a minute
// that is over by the time the store charges the rest.
func TestWindowTurnsDuringAnExchange(t *testing.T) {
	for _, tt := range []struct {
		name string
		// others are the units of the next minute that another gateway takes before.
		others int64
		want   bool
	}{
		{"there is room", 0, true},
		{"there is none", 75, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clock := newManual()
			model := storetest.NewMemory(clock.Now)
			store := &faulty{Store: model, clock: clock}
			a, b := limiterOn(t, store, clock.Now, leased), limiterOn(t, model, clock.Now, nil)
			tk := only(ratelimit.Limit{Minute: 100})
			tk.Cost = 1
			held := hold(t, a, clock, tk)
			clock.Add(41 * time.Second)
			costly, others := tk, tk
			costly.Cost, others.Cost = 30, max(1, tt.others)
			store.slow = 2 * time.Second
			if tt.others > 0 {
				// The other's call is in the next minute, before the costly one is.
				store.before = func() { take(t, b, others) }
			}
			d := take(t, a, costly)
			if d.Allowed != tt.want {
				t.Fatalf("with %d held: allowed = %v, want %v", held, d.Allowed, tt.want)
			}
			store.slow, store.before = 0, nil
			// Every call admitted in this minute was charged to this minute.
			admitted := tt.others
			if d.Allowed {
				admitted += costly.Cost
			}
			for range 200 {
				if take(t, a, tk).Allowed {
					admitted++
				}
				if take(t, b, tk).Allowed {
					admitted++
				}
				clock.Add(time.Millisecond)
			}
			if admitted > 100 {
				t.Errorf("admitted %d of 100 in one minute", admitted)
			}
		})
	}
}

// TestClockSteps moves the store's clock back and forth while gateways count
// exactly: a window that was counted in is never opened again, so no scope admits
// more than its quota in any window the store charged, and the windows only go up.
func TestClockSteps(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		gatewayClock, storeClock := newManual(), newManual()
		store := storetest.NewMemory(storeClock.Now)
		var gates []*ratelimit.Limiter
		for range 2 {
			l, err := ratelimit.New(ratelimit.DefaultConfig(), ratelimit.Deps{Store: store, Now: gatewayClock.Now})
			if err != nil {
				rt.Fatal(err)
			}
			gates = append(gates, l)
		}
		tk := only(ratelimit.Limit{Minute: 5, Hour: 20, Day: 60})
		admitted := map[string]int64{}
		var last [ratelimit.Windows]int64
		for range 300 {
			step := rapid.SampledFrom([]time.Duration{
				0, 0, 0, time.Second, 30 * time.Second, -time.Second, -90 * time.Second, 2 * time.Hour, -3 * time.Hour,
			}).Draw(rt, "step")
			storeClock.Add(step)
			gatewayClock.Add(max(0, min(step, time.Minute)))
			d, err := gates[rapid.IntRange(0, 1).Draw(rt, "gate")].Take(context.Background(), tk)
			if err != nil {
				rt.Fatal(err)
			}
			if !d.Allowed {
				continue
			}
			now := storeClock.Now().UnixNano()
			for w := range ratelimit.Windows {
				last[w] = max(last[w], now/int64(ratelimit.WindowSize(w)))
				at := fmt.Sprintf("%s %d", ratelimit.WindowName(w), last[w])
				if admitted[at]++; admitted[at] > tk.Scopes[0].Limit.Quota(w) {
					rt.Fatalf("%s: admitted %d of %d", at, admitted[at], tk.Scopes[0].Limit.Quota(w))
				}
			}
		}
	})
}
