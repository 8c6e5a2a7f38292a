package limits

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func eachMode(t *testing.T, run func(t *testing.T, mode string)) {
	for _, mode := range []string{"exact", "leased"} {
		t.Run(mode, func(t *testing.T) { run(t, mode) })
	}
}

// TestFiveAMinute is the smallest story: two gateways, one Redis, a key with five
// calls a minute. Whoever asks whichever gateway in whatever order gets five
// answers between them, the count goes down one by one, and the sixth is told when
// to come back.
func TestFiveAMinute(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		const five = " {minute: 5}"
		f := newFleet(t, mode, 2, "a"+five, "b"+five, "c"+five, "d"+five, "e"+five, "f"+five)
		t.Run("in turn", func(t *testing.T) {
			f.within(t, time.Minute, [2]string{"a", "b"}, func(key string) []string { return f.inTurn(t, key, 2) })
		})
		t.Run("first one, then the other", func(t *testing.T) {
			f.within(t, time.Minute, [2]string{"c", "d"}, func(key string) []string { return f.inTurn(t, key, 3) })
		})
		t.Run("at once", func(t *testing.T) {
			f.within(t, time.Minute, [2]string{"e", "f"}, func(key string) []string { return f.atOnce(t, mode, key) })
		})
	})
}

// inTurn asks the gateways one after the other, so many calls at each at a time, and
// returns the faults.
func (f *fleet) inTurn(t *testing.T, key string, each int) []string {
	t.Helper()
	var wrong []string
	for i := range 8 {
		before := f.now(t)
		a := f.ask(t, i/each%2, key)
		after := f.now(t)
		end := before.Truncate(time.Minute).Add(time.Minute)
		want := answer{Status: http.StatusOK, Remaining: 4 - i, RetryAfter: -1}
		if i >= 5 {
			want = answer{Status: http.StatusTooManyRequests, RetryAfter: a.Reset}
		}
		got := a
		got.Reset, got.Body = 0, ""
		if got != want {
			wrong = append(wrong, fmt.Sprintf("call %d: got %+v, want %+v (reset in %d): %s", i+1, got, want, a.Reset, a.Body))
		}
		// Never before the window has ended, and soon after: an answer kept in memory
		// is as late as the machine is busy.
		soonest, latest := end.Sub(after), end.Sub(before)+10*time.Second
		if told := time.Duration(a.Reset) * time.Second; told < soonest || told > latest {
			wrong = append(wrong, fmt.Sprintf("call %d: told %v until the window ends, want %v to %v", i+1, told, soonest, latest))
		}
		if i >= 5 && (!strings.Contains(a.Body, `"minute"`) || !strings.Contains(a.Body, "key")) {
			wrong = append(wrong, fmt.Sprintf("call %d: the refusal names neither window nor scope: %s", i+1, a.Body))
		}
	}
	return wrong
}

// atOnce asks both gateways twelve times at the same moment. In mode leased a caller
// may be told to come back before the window ends: permits that the other gateway
// holds may come back.
func (f *fleet) atOnce(t *testing.T, mode, key string) []string {
	t.Helper()
	answers := make([]answer, 12)
	var wg sync.WaitGroup
	ready := make(chan struct{})
	for i := range answers {
		wg.Go(func() {
			<-ready
			answers[i] = f.ask(t, i%2, key)
		})
	}
	close(ready)
	wg.Wait()
	var wrong []string
	var told []int
	for _, a := range answers {
		switch a.Status {
		case http.StatusOK:
			told = append(told, a.Remaining)
		case http.StatusTooManyRequests:
			if a.Remaining != 0 || a.RetryAfter < 1 || a.RetryAfter > a.Reset || mode == "exact" && a.RetryAfter != a.Reset {
				wrong = append(wrong, fmt.Sprintf("refused with %+v", a))
			}
		default:
			wrong = append(wrong, fmt.Sprintf("answered %d: %s", a.Status, a.Body))
		}
	}
	slices.Sort(told)
	if !slices.Equal(told, []int{0, 1, 2, 3, 4}) {
		wrong = append(wrong, fmt.Sprintf("of 12 calls at once %d were answered, left over %v; want five, 4 to 0", len(told), told))
	}
	return wrong
}

// TestDayIsUsedUp asks two gateways from many callers until a quota that is large
// enough for leases is gone: exactly that many are answered, and in mode leased
// Redis is asked for a part of them only.
func TestDayIsUsedUp(t *testing.T) {
	const quota, callers = 600, 16
	eachMode(t, func(t *testing.T, mode string) {
		f := newFleet(t, mode, 2, fmt.Sprintf("a {day: %d}", quota), fmt.Sprintf("b {day: %d}", quota))
		f.within(t, 24*time.Hour, [2]string{"a", "b"}, func(key string) []string {
			asked := f.scripts(t)
			var admitted atomic.Int64
			var wg sync.WaitGroup
			for c := range callers {
				wg.Go(func() { f.use(t, c%2, key, quota, &admitted) })
			}
			wg.Wait()
			asked = f.scripts(t) - asked
			t.Logf("%d answered, Redis asked %d times", admitted.Load(), asked)
			var wrong []string
			for g := range 2 {
				if a := f.ask(t, g, key); a.Status != http.StatusTooManyRequests {
					wrong = append(wrong, fmt.Sprintf("gateway %d answers %d after the quota is gone", g, a.Status))
				}
			}
			if n := admitted.Load(); n != quota {
				wrong = append(wrong, fmt.Sprintf("%d answered, want %d", n, quota))
			}
			if mode == "leased" && asked > quota*3/4 {
				wrong = append(wrong, fmt.Sprintf("Redis was asked %d times for %d calls: nothing was leased", asked, quota))
			}
			return wrong
		})
	})
}

// use asks gateway g until quota calls have been admitted everywhere, or for too
// long. A refusal may mean that the other gateway holds permits it will return.
func (f *fleet) use(t *testing.T, g int, key string, quota int64, admitted *atomic.Int64) {
	t.Helper()
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	for end := time.Now().Add(patience / 2); admitted.Load() < quota && time.Now().Before(end); {
		if f.ask(t, g, key).Status == http.StatusOK {
			admitted.Add(1)
			continue
		}
		<-pace.C
	}
}

// TestKilledGatewayTakesItsShare kills a gateway after a burst: its leased and unspent
// calls are no more than the configured share of the rest of the day, a fifth.
func TestKilledGatewayTakesItsShare(t *testing.T) {
	const quota, burst, callers = 2000, 1000, 8
	f := newFleet(t, "leased", 2, fmt.Sprintf("a {day: %d}", quota), fmt.Sprintf("b {day: %d}", quota))
	f.within(t, 24*time.Hour, [2]string{"a", "b"}, func(key string) []string {
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				for range burst / callers {
					if a := f.ask(t, 0, key); a.Status != http.StatusOK {
						t.Errorf("%+v, want 200", a)
					}
				}
			})
		}
		wg.Wait()
		f.kill(t, 0)
		// The other gateway knows the charged calls alone.
		left := f.ask(t, 1, key).Remaining + 1
		lost, most := quota-burst-left, (quota-burst)/5
		t.Logf("%d permits are lost", lost)
		if lost > most {
			return []string{fmt.Sprintf("%d of %d calls that were left are lost, want at most %d", lost, quota-burst, most)}
		}
		return nil
	})
}

// TestRefusedUntilPermitsReturn has one gateway hold permits of a day that the other
// one runs out of. That one says to come back when they may have been returned,
// which is true, and says midnight once the day is used up.
func TestRefusedUntilPermitsReturn(t *testing.T) {
	t.Parallel()
	const quota, burst, soon = 600, 300, 3
	f := newFleet(t, "leased", 2, fmt.Sprintf("a {day: %d}", quota), fmt.Sprintf("b {day: %d}", quota))
	f.within(t, 24*time.Hour, [2]string{"a", "b"}, func(key string) []string {
		admitted := 0
		for range burst {
			if f.ask(t, 0, key).Status == http.StatusOK {
				admitted++
			}
		}
		a := f.ask(t, 1, key)
		for ; a.Status == http.StatusOK; a = f.ask(t, 1, key) {
			admitted++
		}
		var wrong []string
		if admitted < quota && a.RetryAfter > soon {
			wrong = append(wrong, fmt.Sprintf("after %d of %d calls told to come back in %d s, want at most %d", admitted, quota, a.RetryAfter, soon))
		}
		pace := time.NewTicker(50 * time.Millisecond)
		defer pace.Stop()
		for end := time.Now().Add(patience / 2); time.Now().Before(end); <-pace.C {
			if a = f.ask(t, 1, key); a.Status == http.StatusOK {
				admitted++
			} else if admitted == quota && a.RetryAfter == a.Reset {
				return wrong
			}
		}
		return append(wrong, fmt.Sprintf("after %d of %d calls: %+v, want the whole quota and then the end of the day", admitted, quota, a))
	})
}
