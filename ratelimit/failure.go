package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// without decides a call the store could not be asked about, as the failure
// policy says. cause is why.
func (l *Limiter) without(c *call, cause error) (Decision, error) {
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

// share counts a call against this gateway's part of the units last known to be
// left. It does not decide if that part is nothing at all, though the window may
// have room: the call is neither within its share nor over the quota.
//
// Windows turn by the store's clock as last heard, or by this gateway's if it was
// never heard.
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
		part, v, ok := l.part(accounts[i], scope.Limit, now)
		if !ok {
			return Decision{}, false
		}
		shares[i], views[i] = *scope, v
		shares[i].Limit = part
		for w := range Windows {
			allowed = allowed && v.count[w]+scope.units(c.cost) <= part.room(w)
		}
	}
	if allowed {
		for i := range c.n {
			for w := range Windows {
				accounts[i].local[w] += shares[i].units(c.cost)
				views[i].count[w] += shares[i].units(c.cost)
			}
		}
	}
	d := c.decide(shares, views[:c.n], allowed, SourceLocal)
	d.Degraded = true
	return d, true
}

// part returns this gateway's part of limit, and its used part. A
// window known to be full is told as it is.
func (l *Limiter) part(a *account, limit Limit, now tick) (Limit, view, bool) {
	storeNow := l.storeTime(a, now)
	state := a.state
	state.Advance(storeNow)
	v := viewOf(&state, storeNow)
	quota := [Windows]int64{limit.Minute, limit.Hour, limit.Day}
	for w := range Windows {
		if a.localIndex[w] != state.Index[w] {
			a.localIndex[w], a.local[w] = state.Index[w], 0
		}
		room := limit.room(w) - state.Count[w]
		if room <= 0 {
			continue
		}
		v.count[w] = a.local[w]
		if quota[w] == 0 {
			continue
		}
		if quota[w] = room / int64(l.config.Gateways); quota[w] == 0 {
			return Limit{}, view{}, false
		}
	}
	return Limit{Minute: quota[0], Hour: quota[1], Day: quota[2]}, v, true
}

// storeTime estimates the store's clock, in Unix milliseconds.
func (l *Limiter) storeTime(a *account, now tick) int64 {
	if a.storeNow > 0 {
		return a.storeNow + (now - a.told).Milliseconds()
	}
	return l.base.Add(now).UnixMilli()
}

// exchanged notes how an exchange with a part of the store went.
func (l *Limiter) exchanged(ctx context.Context, group string, calls int, took time.Duration, err error) {
	l.counts.exchanged(calls, err)
	l.timed(ctx, took)
	if errors.Is(err, ErrRestarted) {
		// The store answers; it needs the counts that gateways remember.
		l.restarted.Store(true)
		err = nil
	}
	l.breakers.of(group).report(ctx, l.tick(), err)
}

// changed is told by a breaker when its part of the store goes away and comes back.
func (l *Limiter) changed(ctx context.Context, group string, away bool, cause error) {
	logger := l.logger.With(slog.String("gateway", l.config.Gateway))
	if group != "" {
		logger = logger.With(slog.String("part", group))
	}
	if away {
		logger.LogAttrs(ctx, slog.LevelError, "rate limit store is away", slog.String("error", cause.Error()))
		return
	}
	logger.LogAttrs(ctx, slog.LevelInfo, "rate limit store is back")
}
