package ratelimit_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/test/limits/storetest"
)

// bubble runs body in a bubble of virtual time, with a model store on its clock.
func bubble(t *testing.T, body func(t *testing.T, store *storetest.Memory)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		// The bubble's time begins at midnight: move into the day.
		time.Sleep(3*time.Hour + 10*time.Second)
		body(t, storetest.NewMemory(time.Now))
	})
}

// elapse lets the time of a bubble pass.
func elapse(d time.Duration) { time.Sleep(d) }

// running returns a limiter that runs until the returned function is called.
func running(t *testing.T, store ratelimit.Store, change func(*ratelimit.Config), deps ratelimit.Deps) (*ratelimit.Limiter, func()) {
	t.Helper()
	config := ratelimit.DefaultConfig()
	if change != nil {
		change(&config)
	}
	deps.Store = store
	l, err := ratelimit.New(config, deps)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	return l, func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

// used returns the store's count in a window of the only scope.
func used(t *testing.T, store *storetest.Memory, window int) int64 {
	t.Helper()
	snap, err := store.Snapshot(t.Context(), "org_a")
	if err != nil || len(snap.Scopes) != 1 {
		t.Fatalf("Show = %+v, %v", snap, err)
	}
	return snap.Scopes[0].State.Count[window]
}

// only is a call with one scope.
func only(limit ratelimit.Limit) ratelimit.Take {
	return ratelimit.Take{Org: "org_a", Class: ratelimit.ClassRead, Scopes: []ratelimit.Scope{
		{Kind: ratelimit.KindKey, ID: "k1", Limit: limit},
	}}
}

func spin(t *testing.T, l *ratelimit.Limiter, tk ratelimit.Take, n int, every time.Duration) (admitted int) {
	t.Helper()
	for range n {
		if take(t, l, tk).Allowed {
			admitted++
		}
		time.Sleep(every)
	}
	return admitted
}

func TestRunRenewsInTheBackground(t *testing.T) {
	bubble(t, func(t *testing.T, store *storetest.Memory) {
		l, stop := running(t, store, leased, ratelimit.Deps{})
		defer stop()
		tk := only(ratelimit.Limit{Minute: 100_000})
		spin(t, l, tk, 2000, time.Millisecond)
		for i := range 5000 {
			if d := take(t, l, tk); d.Source != ratelimit.SourceLease {
				t.Fatalf("call %d was decided by %s: permits ran out", i, d.Source)
			}
			time.Sleep(time.Millisecond)
		}
	})
}

func TestRunReturnsIdlePermits(t *testing.T) {
	bubble(t, func(t *testing.T, store *storetest.Memory) {
		l, stop := running(t, store, leased, ratelimit.Deps{})
		defer stop()
		spin(t, l, only(ratelimit.Limit{Minute: 10_000}), 500, time.Millisecond)
		if got := used(t, store, 0); got <= 500 {
			t.Fatalf("charged %d for 500 calls: nothing is leased", got)
		}
		time.Sleep(3 * time.Second)
		if got := used(t, store, 0); got != 500 {
			t.Errorf("charged %d for 500 calls after a rest, want 500", got)
		}
	})
}

func TestRunReturnsPermitsOnTheWayOut(t *testing.T) {
	bubble(t, func(t *testing.T, store *storetest.Memory) {
		l, stop := running(t, store, leased, ratelimit.Deps{})
		spin(t, l, only(ratelimit.Limit{Hour: 10_000}), 500, time.Millisecond)
		stop()
		if got := used(t, store, 1); got != 500 {
			t.Errorf("charged %d for 500 calls after the end, want 500", got)
		}
	})
}

func TestRunReturnsPermitsOfAnotherQuota(t *testing.T) {
	bubble(t, func(t *testing.T, store *storetest.Memory) {
		l, stop := running(t, store, leased, ratelimit.Deps{})
		spin(t, l, only(ratelimit.Limit{Minute: 10_000}), 500, time.Millisecond)
		stop()
		l, stop = running(t, store, leased, ratelimit.Deps{})
		spin(t, l, only(ratelimit.Limit{Minute: 9_000}), 1, 600*time.Millisecond)
		stop()
		if got := used(t, store, 0); got != 501 {
			t.Errorf("charged %d for 501 calls, want as many", got)
		}
	})
}

func TestTwoGatewaysLeaveNothingBehind(t *testing.T) {
	bubble(t, func(t *testing.T, store *storetest.Memory) {
		a, stopA := running(t, store, leased, ratelimit.Deps{})
		b, stopB := running(t, store, leased, ratelimit.Deps{})
		tk := only(ratelimit.Limit{Hour: 1000})
		admitted := 0
		for range 800 {
			admitted += spin(t, a, tk, 1, 0) + spin(t, b, tk, 1, time.Millisecond)
		}
		if admitted < 950 || admitted > 1000 {
			t.Errorf("under load two gateways admitted %d of 1000", admitted)
		}
		// b falls silent: its permits come back, and a can use it.
		for range 40 {
			admitted += spin(t, a, tk, 10, 100*time.Millisecond)
		}
		stopA()
		stopB()
		if admitted != 1000 {
			t.Errorf("admitted %d in the end, want the whole quota of 1000", admitted)
		}
	})
}

func TestRunHearsOfResets(t *testing.T) {
	bubble(t, func(t *testing.T, store *storetest.Memory) {
		l, stop := running(t, store, nil, ratelimit.Deps{})
		defer stop()
		tk := only(ratelimit.Limit{Day: 3})
		time.Sleep(time.Second)
		spin(t, l, tk, 4, 0)
		if d := take(t, l, tk); d.Source != ratelimit.SourceMemory {
			t.Fatalf("a full day was decided by %s, want memory", d.Source)
		}
		if err := store.Reset(t.Context(), "org_a", ratelimit.Ref{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if d := take(t, l, tk); !d.Allowed {
			t.Error("refused a second after another gateway reset the day")
		}
	})
}

func TestRunRestoresWhatTheStoreLost(t *testing.T) {
	bubble(t, func(t *testing.T, store *storetest.Memory) {
		a, stopA := running(t, store, nil, ratelimit.Deps{})
		b, stopB := running(t, store, nil, ratelimit.Deps{})
		defer stopA()
		defer stopB()
		tk := only(ratelimit.Limit{Day: 100})
		spin(t, a, tk, 30, time.Millisecond)
		spin(t, b, tk, 30, time.Millisecond)
		store.Forget()
		store.SetFault(ratelimit.ErrRestarted)
		time.Sleep(700 * time.Millisecond) // both beat, and hear of it
		store.SetFault(nil)
		time.Sleep(time.Second)
		if got := used(t, store, 2); got != 60 {
			t.Errorf("the store counts %d after it lost 60 calls", got)
		}
		if got := spin(t, a, tk, 60, 0); got != 40 {
			t.Errorf("admitted %d more, want 40", got)
		}
	})
}

// A gateway that is lost together with the store has charged no more, since the others
// heard the store last, than all had in the beat before. That much is charged once,
// however many of the others charge it.
func TestALostGatewaysLastBeatIsCharged(t *testing.T) {
	bubble(t, func(t *testing.T, store *storetest.Memory) {
		lost, stopLost := running(t, store, nil, ratelimit.Deps{})
		a, stopA := running(t, store, nil, ratelimit.Deps{})
		b, stopB := running(t, store, nil, ratelimit.Deps{})
		defer stopA()
		defer stopB()
		tk := only(ratelimit.Limit{Day: 1000})
		for range 30 { // 400 units a second, and no clock that anyone shares
			spin(t, lost, tk, 10, 0)
			spin(t, a, tk, 1, 0)
			spin(t, b, tk, 1, 30*time.Millisecond)
		}
		spin(t, lost, tk, 100, time.Millisecond)
		stopLost()
		store.Forget()
		store.SetFault(ratelimit.ErrRestarted)
		time.Sleep(700 * time.Millisecond) // both beat, and hear of it
		store.SetFault(nil)
		time.Sleep(time.Second)
		if got := used(t, store, 2); got != 360 {
			t.Fatalf("the store counts %d, want the 360 of 460 that living gateways have seen", got)
		}
		store.SetDeserted(true)
		time.Sleep(1100 * time.Millisecond)
		if got := used(t, store, 2); got < 460 || got > 360+2*12*17 {
			t.Errorf("the store counts %d, want at least the 460 that were admitted, and no more than two beats on top", got)
		}
	})
}

// Of a gateway that never heard of more than it charged itself, or heard the store once,
// nothing is charged for one that is lost.
func TestNothingIsChargedForALostGatewayThatChargedNothing(t *testing.T) {
	bubble(t, func(t *testing.T, store *storetest.Memory) {
		early, stopEarly := running(t, store, nil, ratelimit.Deps{})
		spin(t, early, only(ratelimit.Limit{Day: 1000}), 500, time.Millisecond)
		stopEarly()
		time.Sleep(time.Hour)
		l, stop := running(t, store, nil, ratelimit.Deps{})
		defer stop()
		spin(t, l, only(ratelimit.Limit{Day: 1000}), 1, 0)
		store.SetDeserted(true)
		time.Sleep(1100 * time.Millisecond)
		if got := used(t, store, 2); got != 501 {
			t.Errorf("the store counts %d, want 501", got)
		}
	})
}

// A gateway that ends while the store recovers gives its permits back once: by
// its remembered counts, and not by taking them off those again.
func TestPermitsOfALostStoreAreNotReturnedTwice(t *testing.T) {
	bubble(t, func(t *testing.T, store *storetest.Memory) {
		l, stop := running(t, store, leased, ratelimit.Deps{})
		spin(t, l, only(ratelimit.Limit{Hour: 10_000}), 500, time.Millisecond)
		if got := used(t, store, 1); got <= 500 {
			t.Fatalf("charged %d for 500 calls: no permits are held", got)
		}
		store.Forget()
		store.SetFault(ratelimit.ErrRestarted)
		time.Sleep(600 * time.Millisecond) // it beats, and hears of it
		store.SetFault(nil)
		stop()
		if got := used(t, store, 1); got != 500 {
			t.Errorf("charged %d for 500 calls after the end, want 500", got)
		}
	})
}

func TestFailurePolicies(t *testing.T) {
	errAway := errors.New("away")
	for _, tt := range []struct {
		name  string
		take  ratelimit.Take
		want  ratelimit.Source
		fails bool
	}{
		{"read, as configured", ratelimit.Take{Class: ratelimit.ClassRead}, ratelimit.SourceLocal, false},
		{"write, as configured", ratelimit.Take{Class: ratelimit.ClassWrite}, "", true},
		{"no class", ratelimit.Take{}, "", true},
		{"organisation says closed", ratelimit.Take{Class: ratelimit.ClassRead, Failure: ratelimit.FailClosed}, "", true},
		{"organisation says open", ratelimit.Take{Failure: ratelimit.FailOpen}, ratelimit.SourceOpen, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, store, _ := newLimiter(t, nil)
			store.SetFault(errAway)
			tt.take.Org, tt.take.Scopes = "org_a", only(ratelimit.Limit{Minute: 80}).Scopes
			d, err := l.Take(t.Context(), tt.take)
			if tt.fails {
				if !errors.Is(err, ratelimit.ErrUnavailable) || !errors.Is(err, errAway) || d.Allowed {
					t.Errorf("Take = %+v, %v; want ErrUnavailable because of the store", d, err)
				}
				return
			}
			if err != nil || !d.Allowed || !d.Degraded || d.Source != tt.want {
				t.Errorf("Take = %+v, %v; want it allowed by %s and marked degraded", d, err, tt.want)
			}
		})
	}
}

func TestLocalShare(t *testing.T) {
	l, store, clock := newLimiter(t, func(c *ratelimit.Config) { c.Gateways = 4 })
	tk := only(ratelimit.Limit{Minute: 100, Hour: 1000})
	drive(t, l, clock, tk, 20, time.Millisecond)
	store.SetFault(errors.New("away"))
	admitted, _ := drive(t, l, clock, tk, 50, time.Millisecond)
	if admitted != 20 {
		t.Errorf("admitted %d without the store, want a quarter of the 80 left", admitted)
	}
	d := take(t, l, tk)
	want := ratelimit.Decision{
		Source: ratelimit.SourceLocal, Degraded: true,
		Windows: []ratelimit.Window{
			{Name: "minute", Limit: 20, Remaining: 0, Size: time.Minute, Reset: 42*time.Second - 70*time.Millisecond},
			{Name: "hour", Limit: 245, Remaining: 225, Size: time.Hour, Reset: 1182*time.Second - 70*time.Millisecond},
		},
		Violated: []ratelimit.Violation{{
			Scope: ratelimit.Ref{Kind: ratelimit.KindKey, ID: "k1"}, Window: "minute", Name: "minute", Limit: 20,
			Reset: 42*time.Second - 70*time.Millisecond,
		}},
		RetryAfter: 42*time.Second - 70*time.Millisecond,
	}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("refusal (-want +got):\n%s", diff)
	}
	clock.Add(42 * time.Second)
	if admitted, _ := drive(t, l, clock, tk, 50, time.Millisecond); admitted != 25 {
		t.Errorf("admitted %d in the next minute, want a quarter of 100", admitted)
	}
	small := only(ratelimit.Limit{Minute: 3})
	small.Scopes[0].ID = "small"
	if _, err := l.Take(t.Context(), small); !errors.Is(err, ratelimit.ErrUnavailable) {
		t.Errorf("a quota with no whole share: %v, want ErrUnavailable", err)
	}
}

func TestDebtsAreCharged(t *testing.T) {
	bubble(t, func(t *testing.T, store *storetest.Memory) {
		l, stop := running(t, store, nil, ratelimit.Deps{})
		defer stop()
		tk := only(ratelimit.Limit{Hour: 800})
		spin(t, l, tk, 10, time.Millisecond)
		store.SetFault(errors.New("away"))
		if got := spin(t, l, tk, 50, time.Millisecond); got != 50 {
			t.Fatalf("admitted %d of 50 without the store", got)
		}
		store.SetFault(nil)
		time.Sleep(2 * time.Second)
		if got := used(t, store, 1); got != 60 {
			t.Errorf("charged %d for 60 calls once the store was back", got)
		}
	})
}

func TestBreaker(t *testing.T) {
	bubble(t, func(t *testing.T, store *storetest.Memory) {
		var log strings.Builder
		logger := slog.New(slog.NewTextHandler(&log, nil))
		config := func(c *ratelimit.Config) {
			c.Failure.Read = ratelimit.FailClosed
			c.Breaker = ratelimit.BreakerConfig{Failures: 3, Cooldown: time.Second, MaxCooldown: 4 * time.Second}
		}
		l := limiterWith(t, store, config, ratelimit.Deps{Logger: logger})
		tk := only(ratelimit.Limit{Hour: 800})
		store.SetFault(errors.New("away"))
		before := store.Calls()
		for range 100 {
			if _, err := l.Take(t.Context(), tk); !errors.Is(err, ratelimit.ErrUnavailable) {
				t.Fatalf("Take: %v", err)
			}
		}
		if got := store.Calls() - before; got != 3 {
			t.Errorf("100 calls asked a store that is away %d times, want 3", got)
		}
		before = store.Calls()
		for range 600 {
			_, _ = l.Take(t.Context(), tk)
			time.Sleep(100 * time.Millisecond)
		}
		// A minute: after 1, 2, 4, 4, ... seconds, each up to a quarter longer.
		if got := store.Calls() - before; got < 12 || got > 18 {
			t.Errorf("in a minute asked a store that is away %d times, want about 15", got)
		}
		store.SetFault(nil)
		time.Sleep(5 * time.Second)
		for range 10 {
			take(t, l, tk)
		}
		if got := strings.Count(log.String(), "\n"); got != 2 {
			t.Errorf("logged %d lines, want one for each change:\n%s", got, &log)
		}
	})
}

func limiterWith(t *testing.T, store ratelimit.Store, change func(*ratelimit.Config), deps ratelimit.Deps) *ratelimit.Limiter {
	t.Helper()
	config := ratelimit.DefaultConfig()
	change(&config)
	deps.Store = store
	l, err := ratelimit.New(config, deps)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestMemoryIsBounded(t *testing.T) {
	l, _, clock := newLimiter(t, func(c *ratelimit.Config) { leased(c); c.Scopes = 1024 })
	tk := only(ratelimit.Limit{Hour: 10})
	for i := range 20_000 {
		tk.Org = "org_" + string(rune('a'+i%26))
		tk.Scopes[0].ID = strconv.Itoa(i)
		take(t, l, tk)
		clock.Add(time.Microsecond)
	}
	if got := l.Remembered(); got > 1024 || got < 100 {
		t.Errorf("remembers %d scopes, want up to 1024", got)
	}
}
