package ratelimit

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// errOpen means that the store was not asked, because it lately did not answer.
var errOpen = errors.New("the store did not answer lately")

// breakers are those of the parts of a store, by [Store.Group]: one part may be away while
// the others answer. That of the name "" hears of beats, too, and so is never without news.
type breakers struct {
	config BreakerConfig
	parts  sync.Map // of *breaker, by group
	away   atomic.Int64
}

// of returns the breaker of a part.
func (b *breakers) of(group string) *breaker {
	if one, ok := b.parts.Load(group); ok {
		return one.(*breaker)
	}
	one, _ := b.parts.LoadOrStore(group, newBreaker(b.config))
	return one.(*breaker)
}

// report notes how an exchange with a part went. It reports whether the part went away or came back by that.
func (b *breakers) report(group string, now tick, err error) (away, changed bool) {
	away, changed = b.of(group).report(now, err)
	switch {
	case changed && away:
		b.away.Add(1)
	case changed:
		b.away.Add(-1)
	}
	return away, changed
}

// retryNow lets one call ask each part that is away.
func (b *breakers) retryNow() {
	b.parts.Range(func(_, one any) bool {
		one.(*breaker).retryNow()
		return true
	})
}

// breaker stops asking a store that does not answer. After some failures in a
// row it is open: no call is made until a cool-down has passed, then one call does,
// alone. Only when that succeeds are all let through again, so a store that comes
// back meets one call of each gateway first.
type breaker struct {
	config BreakerConfig
	open   atomic.Bool

	mu       sync.Mutex
	failures int
	cooldown tick
	// retry is when one call may ask, probing whether one does; a probe that is
	// never heard of again lapses at its next retry.
	retry tick
}

func newBreaker(config BreakerConfig) *breaker {
	return &breaker{config: config, cooldown: config.Cooldown}
}

// allow reports whether the store may be asked.
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

// report notes how an exchange went. It reports whether the store is away, and whether that has changed.
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

// spread lengthens d by up to a quarter, at random.
func spread(d tick) tick { return d + rand.N(d/4+1) }
