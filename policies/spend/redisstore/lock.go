package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bsm/redislock"
)

const (
	// passLock is how long a pass may take before another may begin; two at once do
	// no harm.
	passLock = time.Minute
	// lockRetry is the distance between two looks at a lock that is taken.
	lockRetry = 20 * time.Millisecond
	// lockWait is how long another pass is waited for. The lock of a gateway that has
	// died, or that an older state of Redis has kept, holds up nothing for longer.
	lockWait = 5 * time.Second
)

// Lock waits until no other gateway reconciles an organisation, but not for ever.
func (s *Store) Lock(ctx context.Context, org string) (unlock func(), err error) {
	wait, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	lock, err := redislock.New(s.client).Obtain(wait, s.prefix+"{"+org+"}:pass", passLock, &redislock.Options{
		RetryStrategy: redislock.LinearBackoff(lockRetry),
	})
	if end, _ := wait.Deadline(); err != nil && ctx.Err() == nil && time.Until(end) <= 0 {
		return func() {}, nil // two passes at once do no harm
	}
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	return func() { release(ctx, lock) }, nil
}

// release gives a lock up also after ctx has ended. A lock that cannot be released ends by itself.
func release(ctx context.Context, lock *redislock.Lock) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = lock.Release(ctx)
}

// Leader elects one gateway of all that share the store.
type Leader struct {
	store *Store
	term  time.Duration

	mu       sync.Mutex // guards lock and resigned
	lock     *redislock.Lock
	resigned bool
}

// Leader returns a candidate. Whoever leads does so for a term and must ask again
// before it ends.
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

// Resign implements spend.Leadership.
func (l *Leader) Resign(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resigned = true
	if l.lock != nil {
		release(ctx, l.lock)
		l.lock = nil
	}
}
