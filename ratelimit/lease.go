package ratelimit

import (
	"context"
	"math"
	"time"
)

// Leased counting: permits are charged to the store first and spent on the gateway later, window by window. The permits of a minute expire
// with the minute, while the permits of its hour and day remain valid. A call is admitted locally if all windows of all its scopes have
// permits left. Otherwise the call gets the missing permits from the store, and also fetches a new block for each scope, unless another
// call is already fetching a block.

const (
	// leaseMax is the largest block of one window, in units.
	leaseMax = 10_000
	// leaseShare is the maximum percentage of the units left in a window that all live gateways together may hold as permits. Near the end
	// of a quota, blocks therefore shrink to nothing, and every call is counted exactly.
	leaseShare = 20
	// leaseIdle is the time after which unused permits are returned.
	leaseIdle = 2 * time.Second
	// leaseMargin is subtracted from the end of a window to compensate for clocks that run at slightly different rates.
	leaseMargin = 5 * time.Millisecond
)

// drawn holds the units that a call took from one account before going to the store.
type drawn struct {
	// index and gen identify the windows of the units.
	index [Windows]int64
	gen   int64
	units [Windows]int64
	// renews is set if the call also fetches a new block.
	renews bool
	// left are the units of the account after the call is settled.
	left [Windows]int64
}

// renewal identifies an account that is running out of permits.
type renewal struct {
	org   string
	scope Scope
}

// renewalQueue is the number of renewals that can wait. If the queue is full, calls fetch their permits themselves.
const renewalQueue = 1024

// relimit sets the quota of the account. It returns permits that were drawn under another quota, because a lower quota may have no room for
// them.
func (l *Limiter) relimit(a *account, limit Limit, now tick) {
	if a.limit == limit {
		return
	}
	a.limit = limit
	l.returnPermits(a, now)
}

// spend takes the cost of c from the permits of all its scopes, or from none of them.
func (l *Limiter) spend(c *call, accounts *[MaxScopes]*account, now tick) bool {
	for i := range c.n {
		a, units := accounts[i], c.limited[i].Units(c.cost)
		for w := range Windows {
			if a.held[w] < units || now >= a.ends[w]-leaseMargin {
				return false
			}
		}
	}
	for i := range c.n {
		a, units := accounts[i], c.limited[i].Units(c.cost)
		for w := range Windows {
			a.held[w] -= units
		}
		a.use(units, now)
		if a.low(l.target(a)) && !a.renewing && now >= a.dryUntil {
			l.renewSoon(a, c.limited[i])
		}
	}
	return true
}

// use records that units were spent.
func (a *account) use(units int64, now tick) {
	a.spent += units
	a.lastUse = now
}

// target returns the number of permits that the account should hold in each window: the number needed during the lease horizon at the
// recent rate.
func (l *Limiter) target(a *account) int64 {
	return min(leaseMax, int64(math.Ceil(a.rate*l.config.Lease.Horizon.Seconds())))
}

// low reports whether a limited window has less than half of target left.
func (a *account) low(target int64) bool {
	for w := range Windows {
		if a.limit.Quota(w) > 0 && a.held[w] < target/2 {
			return true
		}
	}
	return false
}

// minMeterInterval is the shortest time over which a rate is measured.
const minMeterInterval = 20 * time.Millisecond

// meter updates the rate of the account. The previous rate has a weight of one half.
func (a *account) meter(now tick) {
	took := now - a.metered
	if took < minMeterInterval {
		return
	}
	rate := float64(a.spent) / took.Seconds()
	if a.rate > 0 && took < 10*minMeterInterval {
		rate = (rate + a.rate) / 2
	}
	a.rate, a.spent, a.metered = rate, 0, now
}

// want returns the units to request beyond a call's need, and marks the account as renewing.
func (l *Limiter) want(a *account, now tick) ([Windows]int64, bool) {
	var want [Windows]int64
	if a.renewing || now < a.dryUntil {
		return want, false
	}
	a.meter(now)
	target, some := l.target(a), false
	for w := range Windows {
		want[w] = max(0, target-a.held[w])
		some = some || want[w] > 0
	}
	a.renewing = some
	return want, some
}

// draw takes the available permits for f from its accounts, and changes f to a request for the rest. If there are no permits and none
// are wanted, f remains a plain call, which can be merged with others.
func (l *Limiter) draw(f *flight) {
	now := l.tick()
	s := l.book.shard(f.op.Org)
	defer s.mu.Unlock()
	leases := false
	for i := range f.op.Scopes {
		scope, d := &f.op.Scopes[i], &f.drawn[i]
		a := l.book.open(s, f.op.Org, scope.Ref(), now)
		a.limit = scope.Limit
		*d = drawn{index: a.state.Index, gen: a.state.Generation}
		draw := &f.draws[i]
		*draw = Draw{}
		for w := range Windows {
			if now >= a.ends[w]-leaseMargin {
				a.held[w] = 0
			}
			d.units[w] = min(a.held[w], f.op.Units(i))
			draw.Need[w] = f.op.Units(i) - d.units[w]
			a.held[w] -= d.units[w]
		}
		draw.Held = a.held
		draw.Want, d.renews = l.want(a, now)
		leases = leases || d.renews || d.units != [Windows]int64{}
	}
	if leases {
		f.op.Draws = f.draws[:len(f.op.Scopes)]
		f.op.Divisor, f.op.Gateway = l.divisor(), l.config.Gateway
	}
}

// undraw returns the units drawn by a call that may not have reached the store. The call was not admitted, so its permits are unspent.
func (l *Limiter) undraw(f *flight) {
	if l.config.Mode != ModeLeased {
		return
	}
	l.eachAccount(&f.op, func(i int, a *account) { a.putBack(&f.drawn[i]) })
}

// putBack puts the units of d back into the account, if their windows are still running.
func (a *account) putBack(d *drawn) {
	if d.renews {
		a.renewing = false
	}
	if d.gen != a.state.Generation {
		return
	}
	for w, n := range d.units {
		if d.index[w] == a.state.Index[w] {
			a.held[w] += n
		}
	}
}

// settle applies the store's answer to f. It returns true if the answer is invalid, because permits contributed by the call belonged to
// a window that had ended when the store charged the rest.
func (l *Limiter) settle(f *flight) (turned bool) {
	now := l.tick()
	s := l.book.shard(f.op.Org)
	defer s.mu.Unlock()
	admitted := f.op.Admitted == 1
	for i := range f.op.Scopes {
		for w, n := range f.drawn[i].units {
			turned = turned || admitted && n > 0 && f.drawn[i].index[w] != f.op.After[i].Index[w]
		}
	}
	for i := range f.op.Scopes {
		scope, d, after := &f.op.Scopes[i], &f.drawn[i], &f.op.After[i]
		a := l.book.open(s, f.op.Org, scope.Ref(), now)
		a.learn(scope.Limit, after, f.ans)
		a.lastUse = f.ans.got
		if l.config.Mode != ModeLeased {
			continue
		}
		if admitted && !turned {
			a.use(f.op.Units(i), now)
		} else {
			a.putBack(d)
		}
		if len(f.op.Draws) > 0 {
			a.receive(after, &f.op.Draws[i], d.renews, now)
		}
		d.left = a.held
		if !admitted && a.held == [Windows]int64{} {
			l.returnPermits(a, now) // nothing to wait for
		}
	}
	return turned
}

// receive adds the granted units to the account. If none were granted, it delays the next request.
func (a *account) receive(after *State, d *Draw, renews bool, now tick) {
	if renews {
		a.renewing = false
	}
	dry := false
	for w, n := range d.Granted {
		if after.Index[w] == a.state.Index[w] && after.Generation == a.state.Generation {
			a.held[w] += n
			a.listed[w] = d.Held[w] + n
		}
		dry = dry || n == 0 && d.Want[w] > 0
	}
	if dry && renews {
		// The window is almost full: for a while, calls are counted one by one.
		a.dryUntil = now + dryFor
	}
}

// dryFor is the pause before the next request for a block after a window had no units to grant.
const dryFor = 100 * time.Millisecond

// findLeases determines the windows of a refused call that have permits held by other gateways, because idle permits are returned. It does
// nothing if there is a recent result.
func (l *Limiter) findLeases(ctx context.Context, f *flight) {
	after := f.op.After
	refs := make([]Ref, len(f.op.Scopes))
	for i := range f.op.Scopes {
		refs[i] = f.op.Scopes[i].Ref()
	}
	defer l.eachAccount(&f.op, func(i int, a *account) { f.back[i] = a.back })
	soon := time.Duration(0)
	if l.config.Mode == ModeLeased && l.live.Load() > 1 {
		soon = leaseIdle + HeartbeatInterval
	}
	now, due := l.tick(), false
	l.eachAccount(&f.op, func(_ int, a *account) {
		if a.refused == 0 || now-a.refused >= l.trust {
			// Until that is known, other gateways may hold permits.
			a.refused, a.back, due = now, [Windows]time.Duration{soon, soon, soon}, true
		}
	})
	if !due || soon == 0 {
		return
	}
	ctx, cancel := l.bounded(context.WithoutCancel(ctx))
	defer cancel()
	leases, err := l.deps.Store.Leases(ctx, f.op.Org, after[0].Index[Windows-1], refs)
	if err != nil {
		return
	}
	l.eachAccount(&f.op, func(i int, a *account) {
		a.back = [Windows]time.Duration{}
		for _, lease := range leases[i] {
			for w, n := range lease.Held {
				if n > 0 && lease.Gateway != l.config.Gateway && lease.Index[w] == after[i].Index[w] {
					a.back[w] = soon
				}
			}
		}
	})
}

// eachAccount calls do for each scope of op that has an account, with the shard of the organisation locked.
func (l *Limiter) eachAccount(op *Op, do func(i int, a *account)) {
	s := l.book.shard(op.Org)
	defer s.mu.Unlock()
	for i := range op.Scopes {
		if a := s.find(op.Org, op.Scopes[i].Ref()); a != nil {
			do(i, a)
		}
	}
}

// returnPermits moves the permits of the account to the list of permits to return, and removes the lease listed in the store.
func (l *Limiter) returnPermits(a *account, now tick) {
	if a.held == [Windows]int64{} && a.listed == [Windows]int64{} {
		return
	}
	adj := Adjustment{
		Ref:     a.ref,
		State:   State{Generation: a.state.Generation, Index: a.state.Index},
		Limit:   a.limit,
		Gateway: l.config.Gateway,
	}
	some := false
	for w, n := range a.held {
		some = some || a.listed[w] > 0 && a.runs(w, now)
		if n > 0 && a.runs(w, now) {
			adj.Delta[w] = -n
			// Lower the known count too, or the window would seem fuller than it is.
			a.state.Count[w] -= n
			some = true
		}
	}
	a.held, a.listed = [Windows]int64{}, [Windows]int64{}
	if some {
		l.mu.Lock()
		l.returns[a.org] = append(l.returns[a.org], adj)
		l.mu.Unlock()
	}
}
