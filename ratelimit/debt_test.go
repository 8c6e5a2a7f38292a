package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/test/limits/storetest"
)

// link is a gateway's connection to a store that others use as well.
type link struct {
	*storetest.Memory
	// cluster makes an organisation's part of the store one that beats do not go to.
	cluster bool

	mu    sync.Mutex
	state linkState
	// unheard are the units that the store charged for calls and permits whose replies were lost.
	unheard int64
}

type linkState int

const (
	up   linkState = iota
	down           // requests are lost
	mute           // replies are lost
)

var errLink = errors.New("no reply")

func (k *link) set(s linkState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state = s
}

// Apply implements ratelimit.Store.
func (k *link) Apply(ctx context.Context, ops []ratelimit.Op) (int64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch k.state {
	case down:
		return 0, errLink
	case mute:
		sent := slices.Clone(ops)
		for i := range sent {
			sent[i].After, sent[i].Draws = nil, slices.Clone(ops[i].Draws)
		}
		if _, err := k.Memory.Apply(ctx, sent); err != nil {
			return 0, err
		}
		for i := range sent {
			k.unheard += sent[i].Admitted * sent[i].Units(0)
			for _, d := range sent[i].Draws {
				k.unheard += sent[i].Admitted * (d.Need[2] + d.Granted[2] - sent[i].Units(0))
			}
		}
		return 0, errLink
	case up:
	}
	return k.Memory.Apply(ctx, ops)
}

// Group implements ratelimit.Store.
func (k *link) Group(org string) string {
	if k.cluster {
		return org
	}
	return ""
}

// Heartbeat implements ratelimit.Store.
func (k *link) Heartbeat(ctx context.Context, gateway string, within time.Duration) (ratelimit.HeartbeatResult, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state != up && !k.cluster {
		return ratelimit.HeartbeatResult{}, errLink
	}
	return k.Memory.Heartbeat(ctx, gateway, within)
}

// Adjust implements ratelimit.Store.
func (k *link) Adjust(ctx context.Context, org string, adjustments []ratelimit.Adjustment) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state == down {
		return errLink
	}
	err := k.Memory.Adjust(ctx, org, adjustments)
	if k.state == mute {
		return errLink
	}
	return err
}

// pair is two gateways at one store.
type pair struct {
	gates    [2]*ratelimit.Limiter
	links    [2]*link
	admitted int64
}

func newPair(t *testing.T, store *storetest.Memory, cluster bool, change func(*ratelimit.Config)) (p *pair, stop func()) {
	t.Helper()
	p = new(pair)
	var stops [2]func()
	for i := range p.gates {
		p.links[i] = &link{Memory: store, cluster: cluster}
		p.gates[i], stops[i] = running(t, p.links[i], change, ratelimit.Deps{})
	}
	elapse(2 * ratelimit.HeartbeatInterval) // each hears of the other
	return p, func() { stops[0](); stops[1]() }
}

// calls makes calls at both gateways for a time, 50 a second at each.
func (p *pair) calls(t *testing.T, tk ratelimit.Take, length time.Duration) (admitted int64) {
	t.Helper()
	for range length / (20 * time.Millisecond) {
		for _, l := range p.gates {
			d, err := l.Take(t.Context(), tk)
			if err != nil && !errors.Is(err, ratelimit.ErrUnavailable) {
				t.Fatal(err)
			}
			if d.Allowed {
				admitted++
			}
		}
		elapse(20 * time.Millisecond)
	}
	p.admitted += admitted
	return admitted
}

func (p *pair) set(s linkState) {
	for _, k := range p.links {
		k.set(s)
	}
}

// unheard is what both gateways' lost exchanges have charged.
func (p *pair) unheard() (n int64) {
	for _, k := range p.links {
		k.mu.Lock()
		n += k.unheard
		k.mu.Unlock()
	}
	return n
}

// A store that comes and goes ten times in one window, and whose replies are lost each time it is
// there, has gateways admit their shares once. It charges each debt once, as soon as a reply arrives,
// and the quota holds from then on.
func TestTheStoreFlapsAndEveryReplyIsLost(t *testing.T) {
	for _, mode := range []ratelimit.Mode{ratelimit.ModeExact, ratelimit.ModeLeased} {
		for _, cluster := range []bool{false, true} {
			for _, gateways := range []int{2, 8} {
				t.Run(fmt.Sprintf("%s, cluster %v, %d gateways", mode, cluster, gateways), func(t *testing.T) {
					bubble(t, func(t *testing.T, store *storetest.Memory) {
						p, stop := newPair(t, store, cluster, func(c *ratelimit.Config) { c.Mode, c.Gateways = mode, gateways })
						defer stop()
						p.flap(t, store, mode, int64(gateways))
					})
				})
			}
		}
	}
}

func (p *pair) flap(t *testing.T, store *storetest.Memory, mode ratelimit.Mode, gateways int64) {
	t.Helper()
	const quota = 2000
	tk := only(ratelimit.Limit{Day: quota})
	p.calls(t, tk, 4*time.Second)
	held, while := p.gates[0].HeldOf(2)+p.gates[1].HeldOf(2), int64(0)
	for range 10 {
		p.set(down)
		while += p.calls(t, tk, 2*time.Second)
		p.set(mute)
		while += p.calls(t, tk, 3*time.Second)
	}
	if rest := quota - p.admitted + while; while > rest*2/gateways+held || while < rest/gateways {
		t.Errorf("admitted %d of the %d left while no reply arrived, want %d permits and the shares of two of %d gateways", while, rest, held, gateways)
	}
	p.set(up)
	elapse(3 * time.Second)
	if got, want := used(t, store, 2), p.admitted+p.unheard(); mode == ratelimit.ModeExact && got != want {
		t.Errorf("the store counts %d, want the %d that were admitted and %d that lost exchanges charged", got, p.admitted, p.unheard())
	}
	p.calls(t, tk, 60*time.Second)
	if all := p.admitted + p.unheard(); p.admitted > quota || all < quota*9/10 {
		t.Errorf("admitted %d of %d in all (%d more were charged by lost exchanges)", p.admitted, quota, p.unheard())
	}
}

// A single exchange that fails makes a debt, too: the next one carries it, so the store decides
// with it.
func TestTheNextExchangeCarriesTheDebt(t *testing.T) {
	l, store, _ := newLimiter(t, func(c *ratelimit.Config) { c.Gateways = 1 })
	tk := only(ratelimit.Limit{Day: 10})
	for range 4 {
		take(t, l, tk)
	}
	store.SetFault(errors.New("away"))
	if d := take(t, l, tk); !d.Allowed || d.Source != ratelimit.SourceLocal {
		t.Fatalf("without the store: %+v, want it admitted", d)
	}
	store.SetFault(nil)
	if d := take(t, l, tk); d.Source != ratelimit.SourceRedis || d.Windows[0].Remaining != 4 {
		t.Errorf("the next call: %s with %d left, want redis with 4", d.Source, d.Windows[0].Remaining)
	}
	if got := used(t, store, 2); got != 6 {
		t.Errorf("the store counts %d, want 6", got)
	}
}

// A share leaves out the calls that other gateways may make before they hear of this one's, even if
// none of them is heard any more: they may be about to come back.
func TestAShareLeavesOutWhatOthersMayUse(t *testing.T) {
	for quota, want := range map[int64]bool{320: false, 2000: true} {
		bubble(t, func(t *testing.T, store *storetest.Memory) {
			alone, stopAlone := running(t, &link{Memory: store, cluster: true}, nil, ratelimit.Deps{})
			k := &link{Memory: store, cluster: true}
			l, stop := running(t, k, nil, ratelimit.Deps{})
			defer stop()
			elapse(2 * ratelimit.HeartbeatInterval)
			tk := only(ratelimit.Limit{Day: quota})
			for range 150 { // 100 calls a second
				take(t, alone, tk)
				spin(t, l, tk, 1, 20*time.Millisecond)
			}
			stopAlone()
			elapse(10 * time.Second)
			k.set(down)
			if d, err := l.Take(t.Context(), tk); d.Allowed != want {
				t.Errorf("with %d of %d used and no store: %+v, %v, want it admitted: %v", 300, quota, d, err, want)
			}
		})
	}
}

// A gateway that takes the place of another one, under the same name, owes for itself.
func TestDebtsAfterAGatewayRestarts(t *testing.T) {
	bubble(t, func(t *testing.T, store *storetest.Memory) {
		tk := only(ratelimit.Limit{Day: 800})
		for range 3 {
			k := &link{Memory: store}
			l, stop := running(t, k, func(c *ratelimit.Config) { c.Gateway = "gw" }, ratelimit.Deps{})
			k.set(down)
			if got := spin(t, l, tk, 10, time.Millisecond); got != 10 {
				t.Fatalf("admitted %d of 10 without the store", got)
			}
			k.set(mute)
			elapse(5 * time.Second)
			k.set(up)
			stop()
		}
		if got := used(t, store, 2); got != 30 {
			t.Errorf("the store counts %d, want the 30 of three gateways", got)
		}
	})
}

// Debts of a part that is away stay, and the other parts' debts are charged meanwhile.
func TestDebtsOfAPartThatIsAway(t *testing.T) {
	bubble(t, func(t *testing.T, store *storetest.Memory) {
		parts := newParts(store)
		parts.set("org_a", errLink)
		parts.set("org_b", errLink)
		l, stop := running(t, parts, nil, ratelimit.Deps{})
		tk := only(ratelimit.Limit{Day: 800})
		for _, org := range []string{"org_a", "org_b"} {
			tk.Org = org
			spin(t, l, tk, 10, time.Millisecond)
		}
		count := func(org string) (n int64) {
			snap, err := store.Snapshot(t.Context(), org)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range snap.Scopes {
				n += s.State.Count[2]
			}
			return n
		}
		parts.set("org_b", nil)
		elapse(5 * time.Second)
		if a, b := count("org_a"), count("org_b"); a != 0 || b != 10 {
			t.Errorf("the store counts %d and %d, want 0 of the part that is away and 10 of the other", a, b)
		}
		tk.Org = "org_a"
		if got := spin(t, l, tk, 200, time.Millisecond); got != 90 {
			t.Errorf("admitted %d more at the part that is away, want the 90 left of the share", got)
		}
		parts.set("org_a", nil)
		elapse(5 * time.Second)
		if a := count("org_a"); a != 100 {
			t.Errorf("the store counts %d, want 100", a)
		}
		stop()
	})
}

// Debts of a window that has ended are forgotten, and a new window has a share of its own.
func TestDebtsEndWithTheirWindows(t *testing.T) {
	l, store, clock := newLimiter(t, nil)
	tk := only(ratelimit.Limit{Minute: 80})
	take(t, l, tk)
	store.SetFault(errors.New("away"))
	for range 2 {
		if admitted, _ := drive(t, l, clock, tk, 50, time.Millisecond); admitted < 9 || admitted > 10 {
			t.Errorf("admitted %d, want an eighth of 80", admitted)
		}
		clock.Add(time.Minute)
	}
	store.SetFault(nil)
	take(t, l, tk)
	if got := [2]int64{used(t, store, 0), used(t, store, 2)}; got != [2]int64{1, 21} {
		t.Errorf("the store counts %v in the minute and the day, want 1 and 21", got)
	}
}
