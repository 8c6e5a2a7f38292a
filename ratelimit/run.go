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

// HeartbeattbeatInterval is how often a gateway tells the store that it is alive, and hears of resets
// and restarts.
const HeartbeatInterval = 500 * time.Millisecond

const (
	// beatWithin is how long a silent gateway is taken to be alive.
	beatWithin = 5 * time.Second
	// grace bounds the work on the way out.
	grace = 2 * time.Second
	// adjustBatch is how many corrections go to the store in one exchange, adjustFlights
	// how many exchanges are under way at once.
	adjustBatch, adjustFlights = 200, 16
	// awayWithin bounds the attempt to restore counts to parts of the store that were away.
	awayWithin = time.Second
)

// Run does the background work of l until ctx ends: it renews leases before they
// run out, returns idle ones, charges calls admitted while the store was away and not yet charged,
// restores counts that the store has lost, and counts the gateways alive. On the way
// out it returns all leases.
//
// A Limiter that is not run decides all the same, but hears of resets and gives
// unused permits back only when their windows end.
func (l *Limiter) Run(ctx context.Context) error {
	beat := time.NewTicker(HeartbeatInterval)
	defer beat.Stop()
	l.running.Store(true)
	defer l.running.Store(false)
	resets := l.heartbeat(ctx, -1) // at once: others wait for those they know, should the store restart
	// Each kind of work has goroutines of its own: far from the store one exchange takes
	// as long as a lease lasts.
	work, ctx := errgroup.WithContext(ctx)
	var due [2]chan struct{}
	for i, do := range [...]func(context.Context){l.tend, l.charge} {
		due[i] = make(chan struct{}, 1)
		work.Go(func() error { return panics.Catch(func() { doWhen(ctx, due[i], do) }) })
	}
	for range l.config.Commit.MaxInFlight {
		work.Go(func() error { return panics.Catch(func() { l.renewAll(ctx) }) })
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
				default: // the last time is not over
				}
			}
		}
	}
}

// doWhen does some work each time it is due, until ctx ends.
func doWhen(ctx context.Context, due <-chan struct{}, do func(context.Context)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-due:
			do(ctx)
		}
	}
}

// renewAll renews leases until ctx ends.
func (l *Limiter) renewAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-l.renewals:
			l.renew(ctx, r)
		}
	}
}

// bounded returns ctx with the deadline of one exchange.
func (l *Limiter) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, l.config.Timeout)
}

// heartbeat tells the store that this gateway is alive. It returns the number of
// resets, which was known before as given. It asks a store that is away, too: that
// is how a gateway without calls hears that it is back, and soon enough to restore the
// lost counts before anything is admitted.
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

// tend does the due work at those parts of the store that answer: it restores counts
// that were lost, and returns permits.
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
	// A failed return is not tried again: it may have been done. The permits die
	// with their windows.
	_ = l.adjust(ctx, returns)
}

// collect lists the permits that lie idle at parts of the store that answer, and
// forgets accounts of yesterday.
func (l *Limiter) collect() {
	now := l.tick()
	l.book.each(func(a *account) bool {
		if now-a.lastUse > l.config.Lease.Idle && !l.breakerOf(a.org).open.Load() {
			l.giveBack(a, now)
		}
		return now-a.lastUse < WindowSize(Windows-1)
	})
}

// restore brings back the counts that the store has lost. Parts that were away are tried, too, as
// another server may have taken their place. A part of a cluster whose server does not answer is not
// waited for: a server that answers later is another one, or has lost nothing. Debts are charged after the pause: counts that
// others restore, the largest winning, would take them in.
func (l *Limiter) restore(ctx context.Context) error {
	return l.deps.Store.Restore(ctx, l.config.Gateway, l.config.Timeout, func(ctx context.Context) error {
		// Calls under way may have been charged to the counts that are lost, and
		// be admitted when it lands; they are remembered then.
		l.exchanging.Lock()
		l.exchanging.Unlock() //nolint:staticcheck // only waited for
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

// remembered are the counts that this gateway knows of in windows that still run, by organisation:
// those of parts of the store that answer, and of parts of a cluster that are away.
// more, unless nil, returns units to count on top.
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

// dropReturns forgets the permits on their way back. They were charged to counts
// that were lost, and the remembered counts are without them already: given
// back to the restored counts they would count twice.
func (l *Limiter) dropReturns() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for org, list := range l.returns {
		l.returns[org] = slices.DeleteFunc(list, func(adj Adjustment) bool { return slices.Min(adj.Delta[:]) < 0 })
	}
}

// adjust sends adjustments to the store, several batches at once. It joins their errors.
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

// returnAll gives all permits back, and charges what is owed.
func (l *Limiter) returnAll(ctx context.Context) {
	now := l.tick()
	l.book.each(func(a *account) bool {
		a.renewing = false
		l.giveBack(a, now)
		return true
	})
	l.tend(ctx)
	l.breakers.retryNow() // askStore is no later time to ask
	l.charge(ctx)
}

// renewSoon asks the background for new permits. If there is none, or it has too
// much to do, the next call that finds none left fetches them itself. The shard of
// a is locked.
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

// renew fetches permits for first and all others that wait, in one exchange for
// each group of organisations.
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

// fetch makes one exchange for renewals.
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
	ans, err := l.apply(ctx, ops)
	l.exchanged(ctx, l.deps.Store.Group(ops[0].Org), 0, ans.got-ans.sent, err)
	for i := range ops {
		l.fetched(&ops[i], ans, err)
	}
}

// fetchOp is the operation that renews r, if that is still wanted.
func (l *Limiter) fetchOp(r renewal) (Op, bool) {
	now := l.tick()
	s := l.book.shard(r.org)
	defer s.mu.Unlock()
	a := s.find(r.org, r.scope.Ref())
	if a == nil {
		return Op{}, false
	}
	a.renewing = false
	if a.limit != r.scope.Limit || !l.mayAsk(l.deps.Store.Group(r.org), now) {
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

// fetched takes the units of a renewal into its account.
func (l *Limiter) fetched(op *Op, ans answer, err error) {
	s := l.book.shard(op.Org)
	defer s.mu.Unlock()
	a := s.find(op.Org, op.Scopes[0].Ref())
	switch {
	case a == nil:
	case err != nil:
		a.renewing = false
	default:
		lastUse := a.lastUse
		a.learn(op.Scopes[0].Limit, &op.After[0], ans)
		a.lastUse = lastUse // a renewal is no use
		a.receive(&op.After[0], &op.Draws[0], true, ans.got)
	}
}
