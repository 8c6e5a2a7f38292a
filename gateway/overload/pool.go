package overload

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Pool limits the units, such as bytes or connections, that requests hold at the same time. One organisation can hold at most three
// quarters of them, so that it cannot block the others. Requests wait in the order of their arrival, but a request that waits because of
// its organisation's share does not delay other organisations. Two organisations together can use all units. A Pool is safe for concurrent
// use.
type Pool struct {
	most int64
	all  *semaphore.Weighted

	mu     sync.Mutex                     // guards shares
	shares map[string]*semaphore.Weighted // by organisation; only configured organisations occur
}

// NewPool returns a Pool with the given number of units. largest is the number of units that the largest request needs. One organisation
// can hold that many, even if they are more than three quarters.
func NewPool(size, largest int64) *Pool {
	return &Pool{
		most: max(size-size/4, min(largest, size)), all: semaphore.NewWeighted(size), shares: make(map[string]*semaphore.Weighted),
	}
}

// Most returns the number of units that one organisation can hold.
func (p *Pool) Most() int64 { return p.most }

func (p *Pool) share(org string) *semaphore.Weighted {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.shares[org]
	if !ok {
		s = semaphore.NewWeighted(p.most)
		p.shares[org] = s
	}
	return s
}

// TryAcquire takes n units for an organisation without waiting, and reports whether they were available.
func (p *Pool) TryAcquire(org string, n int64) bool {
	share := p.share(org)
	if !share.TryAcquire(n) {
		return false
	}
	if !p.all.TryAcquire(n) {
		share.Release(n)
		return false
	}
	return true
}

// Acquire takes n units for an organisation, at most Most. It waits until they are available or ctx ends.
func (p *Pool) Acquire(ctx context.Context, org string, n int64) error {
	share := p.share(org)
	if err := share.Acquire(ctx, n); err != nil {
		return fmt.Errorf("overload: %w", err)
	}
	if err := p.all.Acquire(ctx, n); err != nil {
		share.Release(n)
		return fmt.Errorf("overload: %w", err)
	}
	return nil
}

// Release gives n units of an organisation back.
func (p *Pool) Release(org string, n int64) {
	p.all.Release(n)
	p.share(org).Release(n)
}
