package ratelimit

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// errOpen means that the store was not called because recent calls failed.
var errOpen = errors.New("the store has not responded recently")

// breakers holds a circuit breaker for each part of a store, by [Store.Group], because one part may be down while the others respond.
// The breaker of the group "" also tracks heartbeats, so that it always has recent results.
type breakers struct {
	config BreakerConfig
	parts  sync.Map // group to *breaker
}

// of returns the breaker of a group.
func (b *breakers) of(group string) *breaker {
	if one, ok := b.parts.Load(group); ok {
		return one.(*breaker)
	}
	one, _ := b.parts.LoadOrStore(group, newBreaker(b.config))
	return one.(*breaker)
}

// anyOpen reports whether any part is down.
func (b *breakers) anyOpen() (open bool) {
	b.parts.Range(func(_, one any) bool {
		open = one.(*breaker).open.Load()
		return !open
	})
	return open
}

// retryNow lets one call probe each part that is down.
func (b *breakers) retryNow() {
	b.parts.Range(func(_, one any) bool {
		one.(*breaker).retryNow()
		return true
	})
}

// breaker is a circuit breaker. It opens after several consecutive failures and then allows no call until a cool-down has passed. After the
// cool-down it allows a single call, and closes only if this call succeeds. A recovering store thus gets just one call from each gateway at
// first.
type breaker struct {
	config BreakerConfig
	open   atomic.Bool

	mu       sync.Mutex
	failures int
	cooldown tick
	// retry is the time when one call may probe the store. probing is set during a probe. A probe without a result expires at the next
	// retry.
	retry tick
}

func newBreaker(config BreakerConfig) *breaker {
	return &breaker{config: config, cooldown: config.Cooldown}
}

// allow reports whether the store may be called.
func (b *breaker) allow(now tick) bool {
	if !b.open.Load() {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open.Load() {
		return true
	}
	if now < b.retry {
		return false
	}
	b.retry = now + spread(b.cooldown)
	return true
}

// retryNow ends the cool-down.
func (b *breaker) retryNow() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.retry, b.cooldown = 0, b.config.Cooldown
}

// report records the result of a round trip. It returns whether the store is down and whether that has changed.
func (b *breaker) report(now tick, err error) (away, changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.open.Load()
	if err == nil {
		b.failures, b.cooldown = 0, b.config.Cooldown
		b.open.Store(false)
	} else {
		if b.failures++; was {
			b.cooldown = min(2*b.cooldown, b.config.MaxCooldown)
		}
		if b.failures >= b.config.Failures {
			b.open.Store(true)
			b.retry = now + spread(b.cooldown)
		}
	}
	away = b.open.Load()
	return away, away != was
}

// spread extends d by up to a quarter, at random.
func spread(d tick) tick { return d + rand.N(d/4+1) }
