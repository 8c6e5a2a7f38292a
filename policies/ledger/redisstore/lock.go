package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bsm/redislock"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

const (
	// passLock is the longest time that a pass holds the lock. Afterwards another pass may begin; concurrent passes do no harm.
	passLock = time.Minute
	// lockRetry is the interval between attempts to acquire a lock.
	lockRetry = 20 * time.Millisecond
	// lockTerm is the TTL of a lock: how long it remains after its gateway has died or after Redis has returned to an older state. A
	// gateway refreshes the lock of its pass three times per term.
	lockTerm = 5 * time.Second
)

// Lock waits until no other gateway reconciles the organisation, but at most passLock. Then it returns without a lock.
func (s *Store) Lock(ctx context.Context, org string) (unlock func(), err error) {
	wait, cancel := context.WithTimeout(ctx, passLock)
	defer cancel()
	lock, leave, err := s.obtain(wait, org)
	if end, _ := wait.Deadline(); err != nil && ctx.Err() == nil && time.Until(end) <= 0 {
		return func() {}, nil // two concurrent passes do no harm
	}
	if err != nil {
		return nil, fmt.Errorf("lock: %w: %w", ledger.ErrUnavailable, err)
	}
	refreshed, stop := context.WithCancel(ctx)
	var refreshing sync.WaitGroup
	refreshing.Go(func() { refresh(refreshed, lock) })
	return func() { stop(); refreshing.Wait(); release(ctx, lock); leave() }, nil
}

// obtain obtains the lock of an organisation. The passes of one gateway queue in its memory, so that at most one of them polls Redis: while
// a ledger is rebuilt, every call that raises cost waits for the lock.
func (s *Store) obtain(ctx context.Context, org string) (lock *redislock.Lock, leave func(), err error) {
	s.mu.Lock()
	queue := s.of(org).passing
	s.mu.Unlock()
	select {
	case queue <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	leave = func() { <-queue }
	lock, err = redislock.New(s.client).Obtain(ctx, s.prefix+"{"+org+"}:pass", lockTerm, &redislock.Options{
		RetryStrategy: redislock.LinearBackoff(lockRetry),
	})
	if err != nil {
		leave()
	}
	return lock, leave, err
}

// refresh refreshes a lock until ctx is done or Redis has lost the lock.
func refresh(ctx context.Context, lock *redislock.Lock) {
	tick := time.NewTicker(lockTerm / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := lock.Refresh(ctx, lockTerm, nil); errors.Is(err, redislock.ErrNotObtained) {
				return
			}
		}
	}
}

// release releases a lock, even if ctx is done. A lock that cannot be released expires.
func release(ctx context.Context, lock *redislock.Lock) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = lock.Release(ctx)
}

// Leader elects one of the gateways that share the store.
type Leader struct {
	store *Store
	term  time.Duration

	mu       sync.Mutex // guards lock and resigned
	lock     *redislock.Lock
	resigned bool
}

// Leader returns a candidate for leadership. The leader leads for one term and must call Lead again before the term ends.
func (s *Store) Leader(term time.Duration) *Leader { return &Leader{store: s, term: term} }

// Lead reports whether this gateway leads for another term.
func (l *Leader) Lead(ctx context.Context) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.resigned {
		return false
	}
	if l.lock != nil {
		err := l.lock.Refresh(ctx, l.term, nil)
		if err == nil {
			return true
		}
		if !errors.Is(err, redislock.ErrNotObtained) {
			return false
		}
	}
	l.lock = nil
	lock, err := redislock.New(l.store.client).Obtain(ctx, l.store.prefix+"leader", l.term, nil)
	if err != nil {
		return false
	}
	l.lock = lock
	return true
}

// Resign implements ledger.Leadership.
func (l *Leader) Resign(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resigned = true
	if l.lock != nil {
		release(ctx, l.lock)
		l.lock = nil
	}
}
