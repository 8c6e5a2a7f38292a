package ratelimit

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Deps are the dependencies of a Limiter.
type Deps struct {
	// Store is required.
	Store Store
	// Now returns the current time; nil means time.Now. Only differences between times are used, so the wall clock may be wrong. The times
	// must carry a monotonic clock reading or come from a single source.
	Now func() time.Time
	// Logger logs when the store goes down and when it recovers. Nil disables logging.
	Logger *slog.Logger
	// ObserveLatency is called with the duration of each round trip to the store. It may be nil.
	ObserveLatency func(context.Context, time.Duration)
}

// Limiter decides whether calls fit into their quotas. It is safe for concurrent use and lives as long as the process. Each Take contains
// its quotas, so they can change from call to call.
type Limiter struct {
	config   Config
	deps     Deps
	base     time.Time
	commit   *commit
	book     *accountTable
	breakers breakers
	counts   counters
	// trust is how long a full window is assumed to stay full, without asking the store again. If it is 0, a full window is assumed to stay full
	// until it ends or an operator resets it. With leases, other gateways return permits.
	trust time.Duration

	// live is the latest known number of gateways that share the store. shared is set once there was more than one.
	live   atomic.Int64
	shared atomic.Bool
	// renewals are accounts that are running out of permits. running is set while a goroutine handles them.
	renewals chan renewal
	running  atomic.Bool
	// restarted is set while counts lost by the store must be restored.
	restarted atomic.Bool
	// gatewayLost is set while counts that a lost gateway may have charged must be restored.
	gatewayLost atomic.Bool
	// debtor is the name of this process in debts, and debts the number of its latest debt. indebted is set once an account has had a
	// debt.
	debtor   string
	debts    atomic.Int64
	indebted atomic.Bool
	// exchanging is read-locked from before a request that may admit calls until its result is in the table.
	exchanging sync.RWMutex

	mu sync.Mutex
	// returns holds permits that can no longer be spent by this gateway, by organisation.
	returns map[string][]Adjustment
}

// New returns a Limiter. It neither connects to the store nor starts a goroutine; see [Limiter.Run].
func New(config Config, deps Deps) (*Limiter, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("ratelimit: %w", err)
	}
	if deps.Store == nil {
		return nil, errors.New("ratelimit: the store is required")
	}
	config.Gateway = cmp.Or(config.Gateway, rand.Text())
	if deps.Now == nil {
		deps.Now = time.Now
	}
	deps.Logger = cmp.Or(deps.Logger, slog.New(slog.DiscardHandler))
	if deps.ObserveLatency == nil {
		deps.ObserveLatency = func(context.Context, time.Duration) {}
	}
	l := &Limiter{
		config: config, deps: deps,
		base:     deps.Now(),
		book:     newAccountTable(config.Scopes),
		renewals: make(chan renewal, renewalQueue),
		debtor:   rand.Text(),
		returns:  make(map[string][]Adjustment),
	}
	if config.Mode == ModeLeased {
		l.trust = time.Second
	}
	l.live.Store(1)
	l.breakers.config = config.Breaker
	l.commit = newCommit(l)
	return l, nil
}

// Down reports whether the store has not responded recently. Calls are then decided without the store. In a cluster, Down covers only the
// node that receives heartbeats.
func (l *Limiter) Down() bool { return l.breakers.of("").open.Load() }

// tick returns the time since l was created.
func (l *Limiter) tick() tick { return l.deps.Now().Sub(l.base) }

// Take counts a call and decides whether to admit it. A refusal is not an error; errors wrap ErrInvalid or ErrUnavailable.
//
// Take does not stop when ctx is done, because the store may already have charged the call. It returns within about twice the configured
// timeout.
func (l *Limiter) Take(ctx context.Context, t Take) (Decision, error) {
	if err := t.check(); err != nil {
		return Decision{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	d, err := l.take(ctx, &t)
	l.counts.decided(&t, &d, err)
	return d, err
}

func (l *Limiter) take(ctx context.Context, t *Take) (Decision, error) {
	c := call{org: t.Org, class: t.Class, failure: t.Failure, cost: max(1, t.Cost)}
	for i := range t.Scopes {
		if !t.Scopes[i].Limit.Unlimited() {
			c.limited[c.n] = t.Scopes[i]
			c.n++
		}
	}
	if c.n == 0 {
		return Decision{Allowed: true, Source: SourceNone}, nil
	}
	// A window may end during a round trip that relied on permits of the window; then the call is tried again.
	for range attempts {
		if d, ok := l.decideLocally(&c); ok {
			return d, nil
		}
		if d, again, err := l.callStore(ctx, &c); !again {
			return d, err
		}
	}
	return l.decideWithoutStore(&c, errWindowEnded)
}

// attempts is the number of times that one call is tried.
const attempts = 3

var errWindowEnded = errors.New("every attempt was interrupted by the end of a window")

// call is a Take in progress. It stays on the stack: it must not be retained, and it retains only strings of the Take.
type call struct {
	org     string
	class   Class
	failure Failure
	cost    int64
	// limited contains the limited scopes, in its first n elements.
	limited [MaxScopes]Scope
	n       int
}

// scopes returns the limited scopes.
func (c *call) scopes() []Scope { return c.limited[:c.n] }

// decideLocally decides a call by this gateway's counts and permits, if they suffice. All calls of an organisation share one lock, so the
// decision is built after the lock has been released.
func (l *Limiter) decideLocally(c *call) (Decision, bool) {
	var views [MaxScopes]view
	source, ok := l.decideFromMemory(c, &views)
	if !ok {
		return Decision{}, false
	}
	return c.decide(c.scopes(), views[:c.n], source == SourceLease, source), true
}

// decideFromMemory determines whether a call can be decided locally, spends its permits if so, and records the facts for the decision. The
// source is memory for a refusal and lease for an admission.
func (l *Limiter) decideFromMemory(c *call, views *[MaxScopes]view) (Source, bool) {
	now := l.tick()
	s := l.book.shard(c.org)
	defer s.mu.Unlock()
	var accounts [MaxScopes]*account
	known, full := true, false
	org := s.orgs[c.org]
	for i := range c.n {
		scope := &c.limited[i]
		a := org[scope.Ref()]
		accounts[i] = a
		if a == nil {
			known = false
			continue
		}
		l.relimit(a, scope.Limit, now)
		for w := range Windows {
			full = full || a.full(w, scope.Limit, scope.Units(c.cost), now, l.trust)
		}
	}
	source := SourceMemory
	if !full {
		if l.config.Mode != ModeLeased || !known || !l.spend(c, &accounts, now) {
			return "", false
		}
		source = SourceLease
	}
	for i := range c.n {
		if accounts[i] != nil {
			accounts[i].view(&views[i], now)
		}
	}
	return source, true
}

// view sets v to this gateway's view of the account. Permits held by this gateway count as available, because they are spent first.
func (a *account) view(v *view, now tick) {
	for w := range Windows {
		v.known[w] = a.runs(w, now)
		v.count[w] = max(0, a.state.Count[w]-a.held[w])
		v.reset[w], v.back[w] = a.reset(w, now), a.back[w]
	}
}

// breakerOf returns the breaker of the part of the store that counts an organisation.
func (l *Limiter) breakerOf(org string) *breaker { return l.breakers.of(l.deps.Store.Group(org)) }

// canCallStore reports whether a part of the store may be called. While this gateway has lost counts to restore, it must not call a part
// that was down.
func (l *Limiter) canCallStore(group string, now tick) bool {
	b := l.breakers.of(group)
	if b.open.Load() && l.restarted.Load() {
		return false
	}
	return b.allow(now)
}

// callStore lets the store decide a call. again is set if the call must be retried.
func (l *Limiter) callStore(ctx context.Context, c *call) (d Decision, again bool, err error) {
	if !l.canCallStore(l.deps.Store.Group(c.org), l.tick()) {
		d, err = l.decideWithoutStore(c, errOpen)
		return d, false, err
	}
	f := l.commit.get(c)
	defer l.commit.put(f)
	turned := l.exchange(ctx, f)
	if f.err != nil {
		d, err = l.decideWithoutStore(c, f.err)
		return d, false, err
	}
	if turned {
		return Decision{}, true, nil
	}
	if f.op.Admitted == 0 {
		l.findLeases(ctx, f)
	}
	var views [MaxScopes]view
	for i := range c.n {
		views[i] = viewOf(&f.op.After[i], f.ans.now)
		views[i].back = f.back[i]
		for w, held := range f.drawn[i].left {
			views[i].count[w] = max(0, views[i].count[w]-held)
		}
	}
	return c.decide(c.scopes(), views[:c.n], f.op.Admitted == 1, SourceRedis), false, nil
}

// exchange sends f to the store and applies the reply. It returns true if a window ended in the meantime, so that the call must be retried.
func (l *Limiter) exchange(ctx context.Context, f *flight) (turned bool) {
	l.exchanging.RLock()
	defer l.exchanging.RUnlock()
	if l.config.Mode == ModeLeased {
		l.draw(f)
	}
	l.commit.Do(ctx, l.deps.Store.Group(f.op.Org), f) // stores the result in f
	if f.err != nil {
		l.undraw(f)
		return false
	}
	return l.settle(f)
}

// divisor returns the limit for leases; see [Op.Divisor].
func (l *Limiter) divisor() int64 {
	return max(1, (100*l.live.Load()+leaseShare-1)/leaseShare)
}
