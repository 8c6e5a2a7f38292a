package bundle

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tollgate-dev/tollgate/config/panics"
)

// Poller looks at sources whenever they are due.
type Poller struct {
	// Now is the clock.
	Now func() time.Time
	// Sources returns the sources by organisation; it may change at any time.
	Sources func() map[string]*Source
	// Look looks at one source.
	Look func(ctx context.Context, org string, s *Source)
	// Changed wakes the poller when Sources has changed.
	Changed <-chan struct{}
}

// Run polls until the context ends; its error is the context's cause. Without
// sources it only waits.
func (p *Poller) Run(ctx context.Context) error {
	for {
		timer := time.NewTimer(p.due(ctx))
		select {
		case <-timer.C:
		case <-p.Changed:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// idle is how long Run waits when there is nothing to follow.
const idle = time.Hour

// polls is how many bundles are looked at in parallel.
const polls = 4

// due looks at every source that is due and returns how long it is until the
// next is.
func (p *Poller) due(ctx context.Context) time.Duration {
	now := p.Now()
	var looks errgroup.Group
	looks.SetLimit(polls)
	for org, s := range p.Sources() {
		if !s.Next().After(now) {
			looks.Go(func() error { return panics.Catch(func() { p.Look(ctx, org, s) }) })
		}
	}
	panics.Raise(looks.Wait()) // a look returns no other error
	wait := idle
	now = p.Now()
	for _, s := range p.Sources() {
		wait = min(wait, max(s.Next().Sub(now), time.Millisecond))
	}
	return wait
}
