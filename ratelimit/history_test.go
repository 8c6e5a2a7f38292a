package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/test/limits/storetest"
)

// TestNoOverAdmission plays random histories on several gateways over one store,
// in virtual time: calls of all costs, lost requests and replies, gateways that
// crash, clocks that step, quotas that are raised and lowered. In every window of
// every scope no more may pass than the largest quota it had.
func TestNoOverAdmission(t *testing.T) {
	t.Parallel()
	for _, mode := range []ratelimit.Mode{ratelimit.ModeExact, ratelimit.ModeLeased} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			leased := 0
			for range rounds {
				rapid.Check(t, func(t *rapid.T) {
					h := newHistory(t, mode)
					h.play(t)
					leased += h.leased
				})
			}
			least := 500
			if testing.Short() {
				least /= 5 // there are a fifth of the histories then
			}
			if mode == ratelimit.ModeLeased && leased < least {
				t.Errorf("only %d calls used leased permits: the histories show little", leased)
			}
		})
	}
}

// rounds multiplies the number of histories: the rarest faults need some luck.
const rounds = 2

// history is one random history.
type history struct {
	t     *rapid.T
	clock *manual
	store *faulty
	mode  ratelimit.Mode
	gates []*ratelimit.Limiter
	quota map[string]ratelimit.Limit
	// leased is the number of calls admitted on leased permits.
	leased int
	// admitted and allowed are units by scope, window and index.
	admitted, allowed map[string]int64
}

func newHistory(t *rapid.T, mode ratelimit.Mode) *history {
	h := &history{
		t: t, clock: newManual(), mode: mode,
		quota:    map[string]ratelimit.Limit{},
		admitted: map[string]int64{}, allowed: map[string]int64{},
	}
	h.store = &faulty{Store: storetest.NewMemory(h.clock.Now), clock: h.clock}
	for range rapid.IntRange(1, 4).Draw(t, "gateways") {
		h.gates = append(h.gates, h.gate())
	}
	for _, id := range []string{"k1", "k2", "o"} {
		h.draw(t, id)
	}
	return h
}

func (h *history) gate() *ratelimit.Limiter {
	config := ratelimit.DefaultConfig()
	config.Mode, config.Breaker.Failures = h.mode, 1000
	config.Failure.Read = ratelimit.FailClosed
	l, err := ratelimit.New(config, ratelimit.Deps{Store: h.store, Now: h.clock.Now})
	if err != nil {
		h.t.Fatal(err)
	}
	return l
}

func (h *history) draw(t *rapid.T, id string) {
	quota := rapid.SampledFrom([]int64{0, 7, 40, 300, 2000})
	h.quota[id] = ratelimit.Limit{Minute: quota.Draw(t, "minute"), Hour: quota.Draw(t, "hour"), Day: 3000}
}

func (h *history) play(t *rapid.T) {
	t.Repeat(map[string]func(*rapid.T){
		"burst": h.burst,
		"quota": func(t *rapid.T) { h.draw(t, rapid.SampledFrom([]string{"k1", "k2", "o"}).Draw(t, "id")) },
		"crash": func(t *rapid.T) { h.gates[rapid.IntRange(0, len(h.gates)-1).Draw(t, "gate")] = h.gate() },
		"wait": func(t *rapid.T) {
			h.clock.Add(rapid.SampledFrom([]time.Duration{
				time.Millisecond, 300 * time.Millisecond, 3 * time.Second, 41 * time.Second, 20 * time.Minute,
			}).Draw(t, "step"))
		},
	})
}

// burst makes calls from one gateway.
func (h *history) burst(t *rapid.T) {
	l := h.gates[rapid.IntRange(0, len(h.gates)-1).Draw(t, "gate")]
	key := rapid.SampledFrom([]string{"k1", "k2"}).Draw(t, "key")
	cost := rapid.SampledFrom([]int64{1, 1, 1, 2, 9}).Draw(t, "cost")
	every := rapid.SampledFrom([]time.Duration{0, 200 * time.Microsecond, time.Millisecond, 7 * time.Millisecond}).Draw(t, "every")
	trouble := rapid.SampledFrom([]fault{none, none, lostRequest, lostReply}).Draw(t, "trouble")
	slow := rapid.SampledFrom([]time.Duration{0, 0, 20 * time.Millisecond, 3 * time.Second}).Draw(t, "slow")
	for i := range rapid.IntRange(1, 400).Draw(t, "calls") {
		h.store.next, h.store.slow = none, 0
		if i%3 == 2 {
			h.store.next, h.store.slow = trouble, slow
		}
		h.call(l, key, cost)
		h.clock.Add(every)
	}
}

func (h *history) call(l *ratelimit.Limiter, key string, cost int64) {
	tk := ratelimit.Take{Org: "org_a", Cost: cost, Class: ratelimit.ClassRead, Scopes: []ratelimit.Scope{
		{Kind: ratelimit.KindKey, ID: key, Limit: h.quota[key]},
		{Kind: ratelimit.KindOrg, ID: "o", Limit: h.quota["o"]},
	}}
	h.store.at = h.clock.Now()
	d, err := l.Take(context.Background(), tk)
	if err != nil && !errors.Is(err, ratelimit.ErrUnavailable) {
		h.t.Fatalf("Take: %v", err)
	}
	if d.Source == ratelimit.SourceLease {
		h.leased++
	}
	// The time that counts is when the store charged the call, or when it was decided here.
	now := h.store.at.UnixNano()
	for _, s := range tk.Scopes {
		for w := range ratelimit.Windows {
			at := fmt.Sprintf("%s %s %d", s.ID, ratelimit.WindowName(w), now/int64(ratelimit.WindowSize(w)))
			quota := s.Limit.Quota(w)
			if quota == 0 {
				quota = ratelimit.MaxQuota
			}
			h.allowed[at] = max(h.allowed[at], quota)
			if d.Allowed {
				h.admitted[at] += cost
			}
			if h.admitted[at] > h.allowed[at] {
				h.t.Fatalf("%s: admitted %d of %d", at, h.admitted[at], h.allowed[at])
			}
		}
	}
}
