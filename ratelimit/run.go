package ratelimit

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tollgate-dev/tollgate/config/panics"
)

// HeartbeatInterval is the interval between the heartbeats of a gateway. With a heartbeat, the gateway renews its registration in the
// store, and detects resets and restarts of the store.
const HeartbeatInterval = 500 * time.Millisecond

const (
	// beatWithin is the time after a heartbeat during which the gateway counts as alive.
	beatWithin = 5 * time.Second
	// grace limits the duration of the work at shutdown.
	grace = 2 * time.Second
	// adjustBatch is the number of adjustments in one request, and adjustFlights the number of concurrent requests.
	adjustBatch, adjustFlights = 200, 16
	// awayWithin limits the attempt to restore counts to parts of the store that were down.
	awayWithin = time.Second
)

// Run does the background work of l until ctx is done. It renews leases before they run out, returns idle leases, charges calls that were
// admitted while the store was down, restores counts that the store has lost, and counts the live gateways. At the end, it gives all leased
// permits back to the store.
//
// Without Run, a Limiter learns about resets and gives unused permits back only when the windows end.
func (l *Limiter) Run(ctx context.Context) error {
	beat := time.NewTicker(HeartbeatInterval)
	defer beat.Stop()
	l.running.Store(true)
	defer l.running.Store(false)
	resets := l.heartbeat(ctx, -1) // immediately, because after a restart of the store other gateways wait only for those they know
	// Each kind of work has its own goroutines: far from the store, one round trip takes as long as a lease lasts.
	work, ctx := errgroup.WithContext(ctx)
	var due [2]chan struct{}
	for i, do := range [...]func(context.Context){l.tend, l.charge} {
		due[i] = make(chan struct{}, 1)
		work.Go(func() error { return panics.Catch(func() { forEach(ctx, due[i], func(struct{}) { do(ctx) }) }) })
	}
	for range l.config.Commit.MaxInFlight {
		work.Go(func() error {
			return panics.Catch(func() { forEach(ctx, l.renewals, func(r renewal) { l.renew(ctx, r) }) })
		})
	}
	for {
		select {
		case <-ctx.Done():
			panics.Raise(work.Wait())
			out, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
			defer cancel()
			l.returnAll(out)
			return nil
		case <-beat.C:
			resets = l.heartbeat(ctx, resets)
			for _, d := range due {
				select {
				case d <- struct{}{}:
				default: // the previous run has not finished
				}
			}
		}
	}
}

// forEach calls do for each value that arrives on values, until ctx is done.
func forEach[T any](ctx context.Context, values <-chan T, do func(T)) {
	for {
		select {
		case <-ctx.Done():
			return
		case v := <-values:
			do(v)
		}
	}
}

// bounded returns ctx with the deadline of one round trip.
func (l *Limiter) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, l.config.Timeout)
}

// heartbeat reports to the store that this gateway is alive. It returns the number of resets; known is the number as of the previous
// heartbeat. It also calls a store that is down, so that a gateway without calls notices the recovery early enough to restore lost
// counts before anything is admitted.
func (l *Limiter) heartbeat(ctx context.Context, known int64) int64 {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	began := l.tick()
	p, err := l.deps.Store.Heartbeat(ctx, l.config.Gateway, beatWithin)
	l.exchanged(ctx, "", 0, l.tick()-began, err)
	if err != nil {
		return known
	}
	l.live.Store(int64(max(1, p.Live)))
	if p.Live > 1 {
		l.shared.Store(true)
	}
	if p.GatewayLost {
		l.gatewayLost.Store(true)
	}
	if p.Resets != known && known >= 0 {
		l.markStale()
	}
	return p.Resets
}

// tend does the due work at the available parts of the store: it restores lost counts and returns permits.
func (l *Limiter) tend(ctx context.Context) {
	if l.restarted.Swap(false) {
		if l.restore(ctx) != nil {
			l.restarted.Store(true)
			return
		}
		l.dropReturns()
	}
	if l.gatewayLost.Load() {
		known, _ := l.remembered((*account).lately)
		if l.adjust(ctx, known) == nil {
			l.gatewayLost.Store(false)
		}
	}
	l.collect()
	returns := make(map[string][]Adjustment)
	l.mu.Lock()
	for org, list := range l.returns {
		if !l.breakerOf(org).open.Load() {
			returns[org] = list
			delete(l.returns, org)
		}
	}
	l.mu.Unlock()
	// A failed return is not retried, because it may have been executed. The permits expire with their windows.
	_ = l.adjust(ctx, returns)
}

// collect lists the permits that are idle at available parts of the store, and drops accounts of the previous day.
func (l *Limiter) collect() {
	now := l.tick()
	l.book.each(func(a *account) bool {
		if now-a.lastUse > leaseIdle && !l.breakerOf(a.org).open.Load() {
			l.returnPermits(a, now)
		}
		return now-a.lastUse < WindowSize(Windows-1)
	})
}

// restore restores the counts that the store has lost. It also tries parts that were down, because another server may have replaced them.
// It does not wait for a part of a cluster whose server does not respond: a server that responds later is either a replacement or has lost
// nothing. Debts are charged after the pause. Otherwise the counts restored by other gateways would already include them, because the
// largest restored count is kept.
func (l *Limiter) restore(ctx context.Context) error {
	return l.deps.Store.Restore(ctx, l.config.Gateway, l.config.Timeout, func(ctx context.Context) error {
		// Calls in progress may have been charged to the lost counts and then be admitted. Once they are finished, their counts are
		// remembered.
		l.exchanging.Lock()
		l.exchanging.Unlock() //nolint:staticcheck // only waits
		answering, away := l.remembered(nil)
		if err := l.adjust(ctx, answering); err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer time.AfterFunc(awayWithin, cancel).Stop()
		if err := l.adjust(ctx, away); errors.Is(err, ErrNotServing) {
			return err
		}
		return nil
	})
}

// remembered returns this gateway's counts in running windows, by organisation. It separates the counts of available parts of the store
// from the counts of parts of a cluster that are down. If more is not nil, it returns the units to add to the counts of an account.
func (l *Limiter) remembered(more func(*account) int64) (answering, away map[string][]Adjustment) {
	now := l.tick()
	answering, away = make(map[string][]Adjustment), make(map[string][]Adjustment)
	l.book.each(func(a *account) bool {
		if a.storeNow > 0 && a.runs(Windows-1, now) {
			adj := Adjustment{Ref: a.ref, State: a.state, Limit: a.limit}
			if more != nil {
				for w, units := 0, more(a); w < Windows; w++ {
					adj.State.Count[w] += units
				}
			}
			all := answering
			if group := l.deps.Store.Group(a.org); group != "" && l.breakers.of(group).open.Load() {
				all = away
			}
			all[a.org] = append(all[a.org], adj)
		}
		return true
	})
	return answering, away
}

// dropReturns drops the permits that are about to be returned. They were charged to the lost counts, and the remembered counts do not
// include them: returning them to the restored counts would subtract them twice.
func (l *Limiter) dropReturns() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for org, list := range l.returns {
		l.returns[org] = slices.DeleteFunc(list, func(adj Adjustment) bool { return slices.Min(adj.Delta[:]) < 0 })
	}
}

// adjust sends adjustments to the store, several batches concurrently. It joins their errors.
func (l *Limiter) adjust(ctx context.Context, all map[string][]Adjustment) error {
	var exchanges errgroup.Group
	exchanges.SetLimit(adjustFlights)
	var mu sync.Mutex
	var errs []error
	for org, list := range all {
		for batch := range slices.Chunk(list, adjustBatch) {
			exchanges.Go(func() error {
				bounded, cancel := l.bounded(ctx)
				defer cancel()
				began := l.tick()
				err := l.deps.Store.Adjust(bounded, org, batch)
				l.exchanged(ctx, l.deps.Store.Group(org), 0, l.tick()-began, err)
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
				return nil
			})
		}
	}
	_ = exchanges.Wait()
	return errors.Join(errs...)
}

// returnAll returns all permits, and charges all debts.
func (l *Limiter) returnAll(ctx context.Context) {
	now := l.tick()
	l.book.each(func(a *account) bool {
		a.renewing = false
		l.returnPermits(a, now)
		return true
	})
	l.tend(ctx)
	l.breakers.retryNow() // this is the last opportunity
	l.charge(ctx)
}

// renewSoon requests new permits in the background. If there is no background worker, or if its queue is full, the next call without
// permits fetches them itself. The caller holds the lock of a's shard.
func (l *Limiter) renewSoon(a *account, scope Scope) {
	if !l.running.Load() {
		return
	}
	select {
	case l.renewals <- renewal{a.org, scope}:
		a.renewing = true
	default:
	}
}

// renew fetches permits for first and for all waiting renewals, with one round trip for each group of organisations.
func (l *Limiter) renew(ctx context.Context, first renewal) {
	waiting := []renewal{first}
	for more := true; more && len(waiting) < l.config.Commit.MaxBatch; {
		select {
		case r := <-l.renewals:
			waiting = append(waiting, r)
		default:
			more = false
		}
	}
	groups := make(map[string][]renewal)
	for _, r := range waiting {
		g := l.deps.Store.Group(r.org)
		groups[g] = append(groups[g], r)
	}
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		l.fetch(ctx, groups[g])
	}
}

// fetch renews a list of accounts with one round trip.
func (l *Limiter) fetch(ctx context.Context, list []renewal) {
	ops := make([]Op, 0, len(list))
	for _, r := range list {
		if op, ok := l.fetchOp(r); ok {
			ops = append(ops, op)
		}
	}
	if len(ops) == 0 {
		return
	}
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	l.exchanging.RLock()
	defer l.exchanging.RUnlock()
	ans, err := l.apply(ctx, ops, 0)
	for i := range ops {
		l.fetched(&ops[i], ans, err)
	}
}

// fetchOp returns the operation that renews r, if that is still needed.
func (l *Limiter) fetchOp(r renewal) (Op, bool) {
	now := l.tick()
	s := l.book.shard(r.org)
	defer s.mu.Unlock()
	a := s.find(r.org, r.scope.Ref())
	if a == nil {
		return Op{}, false
	}
	a.renewing = false
	if a.limit != r.scope.Limit || !l.canCallStore(l.deps.Store.Group(r.org), now) {
		return Op{}, false
	}
	var d Draw
	var some bool
	if d.Want, some = l.want(a, now); !some {
		return Op{}, false
	}
	d.Held = a.held
	return Op{
		Org: r.org, Scopes: []Scope{r.scope}, Calls: 1, Draws: []Draw{d},
		Divisor: l.divisor(), Gateway: l.config.Gateway,
	}, true
}

// fetched applies the units of a renewal to its account.
func (l *Limiter) fetched(op *Op, ans answer, err error) {
	s := l.book.shard(op.Org)
	defer s.mu.Unlock()
	a := s.find(op.Org, op.Scopes[0].Ref())
	switch {
	case a == nil:
	case err != nil:
		a.renewing = false
	default:
		a.learn(op.Scopes[0].Limit, &op.After[0], ans)
		a.receive(&op.After[0], &op.Draws[0], true, ans.got)
	}
}
