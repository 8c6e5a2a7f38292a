package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// decideWithoutStore decides a call by its failure policy. cause is the error of the store.
func (l *Limiter) decideWithoutStore(c *call, cause error) (Decision, error) {
	switch l.policy(c) {
	case FailOpen:
		return Decision{Allowed: true, Source: SourceOpen, Degraded: true}, nil
	case FailLocal:
		if d, ok := l.share(c); ok {
			return d, nil
		}
	case FailClosed:
	}
	return Decision{}, fmt.Errorf("%w: %w", ErrUnavailable, cause)
}

func (l *Limiter) policy(c *call) Failure {
	switch {
	case c.failure.Valid():
		return c.failure
	case c.class == ClassRead:
		return l.config.Failure.Read
	}
	return l.config.Failure.Write
}

// share counts a call against this gateway's share of the units last known to be left. If the share is zero, it returns false: the call is
// then neither within the share nor over the quota.
//
// Windows follow the store's clock as last known, or this gateway's clock if the store was never heard.
func (l *Limiter) share(c *call) (Decision, bool) {
	now := l.tick()
	s := l.book.shard(c.org)
	defer s.mu.Unlock()
	var views [MaxScopes]view
	var accounts [MaxScopes]*account
	shares := make([]Scope, c.n)
	allowed := true
	for i := range c.n {
		scope := &c.limited[i]
		accounts[i] = l.book.open(s, c.org, scope.Ref(), now)
		accounts[i].limit = scope.Limit
		part, v, ok := l.localShare(accounts[i], scope.Limit, now)
		if !ok {
			return Decision{}, false
		}
		shares[i], views[i] = *scope, v
		shares[i].Limit = part
		for w := range Windows {
			allowed = allowed && v.count[w]+scope.Units(c.cost) <= part.room(w)
		}
	}
	if allowed {
		l.indebted.Store(true)
		for i := range c.n {
			units := shares[i].Units(c.cost)
			accounts[i].owe(units, &l.debts)
			accounts[i].lastLocal = now
			for w := range Windows {
				views[i].count[w] += units
			}
		}
	}
	d := c.decide(shares, views[:c.n], allowed, SourceLocal)
	d.Degraded = true
	return d, true
}

// reconnectSkew is the number of heartbeats that another gateway may be ahead of this one in reaching the store again. The calls that
// all gateways make in that time are subtracted from every share.
const reconnectSkew = 4

// minUptime is the time that the store must have decided the calls of a scope before the scope gets a new share. Otherwise a store that
// fails repeatedly would hand out a share each time.
const minUptime = 10 * time.Second

// localShare returns this gateway's share of limit and the used part of it. The share is the number of units left when the store went
// down, minus the units that other gateways may use before they learn about this gateway's calls, divided by the number of gateways. A
// window known to be full is returned as it is.
func (l *Limiter) localShare(a *account, limit Limit, now tick) (Limit, view, bool) {
	storeNow := l.storeTime(a, now)
	state := a.state
	state.Advance(storeNow)
	if !a.owes() && now-a.lastLocal > minUptime {
		a.local = [Windows]int64{}
	}
	apart := int64(0)
	if l.shared.Load() {
		apart = reconnectSkew * a.lately()
	}
	v := viewOf(&state, storeNow)
	quota := [Windows]int64{limit.Minute, limit.Hour, limit.Day}
	for w := range Windows {
		if a.localIndex[w] != state.Index[w] {
			a.localIndex[w], a.local[w] = state.Index[w], 0
		}
		v.count[w] += a.unpaid(w, state.Index[w])
		room := limit.room(w) - v.count[w]
		if room <= 0 {
			continue
		}
		v.count[w] = a.local[w]
		if quota[w] == 0 {
			continue
		}
		if quota[w] = max(0, room+a.local[w]-apart) / int64(l.config.Gateways); quota[w] == 0 {
			return Limit{}, view{}, false
		}
	}
	return Limit{Minute: quota[0], Hour: quota[1], Day: quota[2]}, v, true
}

// storeTime estimates the store's clock, in Unix milliseconds.
func (l *Limiter) storeTime(a *account, now tick) int64 {
	if a.storeNow > 0 {
		return a.storeNow + (now - a.heardAt).Milliseconds()
	}
	return l.base.Add(now).UnixMilli()
}

// exchanged records the result of a round trip to a part of the store.
func (l *Limiter) exchanged(ctx context.Context, group string, calls int, took time.Duration, err error) {
	l.counts.exchanged(calls, err)
	l.deps.ObserveLatency(ctx, took)
	if errors.Is(err, ErrRestarted) {
		// The store needs the counts that gateways remember. Another server may have replaced one that was down.
		if !l.restarted.Swap(true) {
			l.breakers.retryNow()
		}
		return
	}
	away, changed := l.breakers.of(group).report(l.tick(), err)
	if !changed {
		return
	}
	logger := l.deps.Logger.With(slog.String("gateway", l.config.Gateway))
	if group != "" {
		logger = logger.With(slog.String("part", group))
	}
	if away {
		logger.LogAttrs(ctx, slog.LevelError, "rate limit store is down", slog.String("error", err.Error()))
		return
	}
	logger.LogAttrs(ctx, slog.LevelInfo, "rate limit store is available again")
}
