package ledger

import (
	"context"
	"errors"
	"time"
)

// Loop calls [Reconciler.Pass] for all organisations that have budgets. The leading gateway makes the regular passes. A gateway that has
// opened a hold makes additional passes, at growing intervals, until the hold is settled.
type Loop struct {
	*Reconciler

	// Leadership elects the gateway that makes the regular passes.
	Leadership
	kicks
}

// Leadership is a lease that one gateway at a time holds.
type Leadership interface {
	// Lead reports whether this gateway leads for another term.
	Lead(ctx context.Context) bool
	// Resign releases the lease, so that another gateway can lead immediately. Lead returns false afterwards.
	Resign(ctx context.Context)
}

// maxKicks is the number of organisations that can wait for a pass.
const maxKicks = 1024

// kicks are the organisations waiting for a pass.
type kicks chan string

// Kick requests an early pass over an organisation by this gateway. It does not block.
func (k kicks) Kick(org string) {
	select {
	case k <- org:
	default: // left to the regular pass
	}
}

// firstLook is the delay between a kick and the first pass.
const firstLook = 200 * time.Millisecond

// Run makes passes until ctx is done, and then resigns.
func (l *Loop) Run(ctx context.Context) error {
	defer l.Resign(ctx)
	regular := time.NewTicker(l.Interval)
	defer regular.Stop()
	soon := time.NewTimer(0)
	defer soon.Stop()
	due, wait := make(map[string]time.Time), make(map[string]time.Duration)
	all := func() {
		orgs := l.Gateway.Budgeted()
		if len(orgs) == 0 || !l.Lead(ctx) {
			return // without budgets the store is not used
		}
		for _, org := range orgs {
			l.runPass(ctx, org)
		}
	}
	all()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-regular.C:
			all()
		case org := <-l.kicks:
			if _, waiting := due[org]; !waiting {
				due[org], wait[org] = time.Now().Add(firstLook), firstLook
				soon.Reset(firstLook)
			}
		case now := <-soon.C:
			for org, at := range due {
				switch {
				case at.After(now):
				case l.runPass(ctx, org) == 0:
					delete(due, org)
				default:
					wait[org] = min(2*wait[org], l.Interval)
					due[org] = now.Add(wait[org])
				}
			}
			if len(due) > 0 {
				soon.Reset(firstLook)
			}
		}
	}
}

// runPass makes one pass and returns the number of holds that remain open. If a pod's deadline is before the next regular pass,
// runPass schedules another pass for that time.
func (l *Loop) runPass(ctx context.Context, org string) int {
	report, err := l.Pass(ctx, org)
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrEpochChanged) {
		l.Logger.WarnContext(ctx, "cannot reconcile the ledger with the platform", "org", org, "error", err.Error())
	}
	if d := report.NextDeadline; d > 0 && d < l.Interval {
		time.AfterFunc(d, func() { l.Kick(org) })
	}
	return report.Open
}
