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

// Deps are the live things a Limiter works with.
type Deps struct {
	// Store is required.
	Store Store
	// Clock defaults to the machine's.
	Clock Clock
	// Logger hears of the store going away and coming back, once each. Nil
	// discards.
	Logger *slog.Logger
	// ObserveLatency is told how long each exchange with the store took. It may be nil.
	ObserveLatency func(context.Context, time.Duration)
}

// Limiter decides whether calls fit their quotas. It is safe for concurrent use
// and lives as long as the process: changed quotas come with each Take.
type Limiter struct {
	config   Config
	deps     Deps
	base     time.Time
	commit   *commit
	book     *accountTable
	breakers breakers
	counts   counters

	// live is how many gateways share the store, as last heard; shared is set once there was
	// another one.
	live   atomic.Int64
	shared atomic.Bool
	// renewals are accounts whose permits run low; running reports that a goroutine
	// sees to them.
	renewals chan renewal
	running  atomic.Bool
	// restarted is set while counts that the store has lost must be restored.
	restarted atomic.Bool
	// gatewayLost is set while those that a lost gateway may have charged must be.
	gatewayLost atomic.Bool
	// debtor names this process among those that owe; debts numbers its debts. indebted is
	// set once an account has owed.
	debtor   string
	debts    atomic.Int64
	indebted atomic.Bool
	// exchanging is held for reading from before an exchange that may admit until
	// its result is in the book.
	exchanging sync.RWMutex

	mu sync.Mutex
	// returns are permits that cannot be spent here any more, by organisation.
	returns map[string][]Adjustment
}

// New returns a Limiter. It does not dial and starts nothing; see [Limiter.Run].
func New(config Config, deps Deps) (*Limiter, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("ratelimit: %w", err)
	}
	if deps.Store == nil {
		return nil, errors.New("ratelimit: no store")
	}
	config.Gateway = cmp.Or(config.Gateway, rand.Text())
	if config.Memory.Refusal == 0 && config.Mode == ModeLeased {
		config.Memory.Refusal = time.Second
	}
	deps.Clock = cmp.Or[Clock](deps.Clock, systemClock{})
	deps.Logger = cmp.Or(deps.Logger, slog.New(slog.DiscardHandler))
	if deps.ObserveLatency == nil {
		deps.ObserveLatency = func(context.Context, time.Duration) {}
	}
	l := &Limiter{
		config: config, deps: deps,
		base:     deps.Clock.Now(),
		book:     newAccountTable(config.Memory.Scopes),
		renewals: make(chan renewal, renewalQueue),
		debtor:   rand.Text(),
		returns:  make(map[string][]Adjustment),
	}
	l.live.Store(1)
	l.breakers.config = config.Breaker
	l.commit = newCommit(l)
	return l, nil
}

// Down reports whether the store is not asked because it lately did not answer.
// In a cluster it speaks for the part that beats go to, not for those of single
// organisations.
func (l *Limiter) Down() bool { return l.breakers.of("").open.Load() }

// tick is the time that has passed since l was made.
func (l *Limiter) tick() tick { return l.deps.Clock.Now().Sub(l.base) }

// Take counts a call and says whether it may pass. The error is ErrInvalid or
// ErrUnavailable, wrapped; a refusal is not an error.
//
// Once begun, Take is not cut short by ctx: the call may already be charged, and
// its outcome is wanted. It returns within about twice the configured timeout.
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
	// A window may turn while an exchange is under way that relied on permits of
	// it; then the call is tried anew.
	for range attempts {
		if d, ok := l.decideLocally(&c); ok {
			return d, nil
		}
		if d, again, err := l.askStore(ctx, &c); !again {
			return d, err
		}
	}
	return l.decideWithoutStore(&c, errWindowEnded)
}

// attempts bounds how often one call is tried.
const attempts = 3

var errWindowEnded = errors.New("windows kept turning")

// call is a Take under way. It stays on the stack: nothing may keep it, and it
// keeps nothing of the Take but strings.
type call struct {
	org     string
	class   Class
	failure Failure
	cost    int64
	// limited are the first n limited scopes.
	limited [MaxScopes]Scope
	n       int
}

// scopes returns the limited scopes.
func (c *call) scopes() []Scope { return c.limited[:c.n] }

// decideLocally decides a call by this gateway's counts and permits, if that is enough.
// All calls of an organisation meet at one lock, so the description of the decision
// is put together after it has been released.
func (l *Limiter) decideLocally(c *call) (Decision, bool) {
	var views [MaxScopes]view
	source, ok := l.look(c, &views)
	if !ok {
		return Decision{}, false
	}
	return c.decide(c.scopes(), views[:c.n], source == SourceLease, source), true
}

// mergeLookback finds out whether a call can be decided here, spends its permits if so,
// and notes the facts of the decision. The source is memory for a refusal, lease for
// an admission.
func (l *Limiter) look(c *call, views *[MaxScopes]view) (Source, bool) {
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
			full = full || a.full(w, scope.Limit, scope.units(c.cost), now, l.config.Memory.Refusal)
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

// view notes this gateway's state of a. Permits held here count as free: they
// will be spent before anything else.
func (a *account) view(v *view, now tick) {
	for w := range Windows {
		v.known[w] = a.runs(w, now)
		v.count[w] = max(0, a.state.Count[w]-a.held[w])
		v.reset[w], v.back[w] = a.reset(w, now), a.back[w]
	}
}

// breakerOf returns the breaker of the part of the store that counts an organisation.
func (l *Limiter) breakerOf(org string) *breaker { return l.breakers.of(l.deps.Store.Group(org)) }

// mayAsk reports whether a part of the store may be asked. One that was away is not, as long as
// this gateway has lost counts to restore.
func (l *Limiter) mayAsk(group string, now tick) bool {
	b := l.breakers.of(group)
	if b.open.Load() && l.restarted.Load() {
		return false
	}
	return b.allow(now)
}

// askStore asks the store. It returns again if the call must be tried anew.
func (l *Limiter) askStore(ctx context.Context, c *call) (d Decision, again bool, err error) {
	if !l.mayAsk(l.deps.Store.Group(c.org), l.tick()) {
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

// exchange brings f to the store and its answer into the book. It reports
// whether a window turned meanwhile, so that the call must be tried anew.
func (l *Limiter) exchange(ctx context.Context, f *flight) (turned bool) {
	l.exchanging.RLock()
	defer l.exchanging.RUnlock()
	if l.config.Mode == ModeLeased {
		l.draw(f)
	}
	l.commit.fly(ctx, f)
	if f.err != nil {
		l.undraw(f)
		return false
	}
	return l.settle(f)
}

// divisor bounds leases: see [Op.Divisor].
func (l *Limiter) divisor() int64 {
	share := int64(l.config.Lease.Share)
	return max(1, (100*l.live.Load()+share-1)/share)
}
