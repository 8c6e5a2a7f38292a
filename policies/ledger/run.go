package ledger

import (
	"context"
	"errors"
	"time"
)

// Loop reconciles all organisations that have budgets, time and again. One gateway
// leads: it makes the regular passes. A gateway that has opened a hold makes passes
// of its own, at growing distances, until that is settled.
type Loop struct {
	*Reconciler

	// Leadership elects the gateway that makes the regular passes.
	Leadership
	kicks
}

// Leadership is a lease that one gateway of all holds.
type Leadership interface {
	// Lead reports whether this gateway leads for another term.
	Lead(ctx context.Context) bool
	// Resign gives the lease up, so that another gateway can lead at once. Lead reports false from then on.
	Resign(ctx context.Context)
}

// maxKicks bounds how many organisations can wait to be looked at.
const maxKicks = 1024

// kicks are the organisations that wait for a pass.
type kicks chan string

// Kick asks for a pass over an organisation soon. It does not wait.
func (k kicks) Kick(org string) {
	select {
	case k <- org:
	default: // the regular pass will do it
	}
}

// firstLook is how long after a kick the first pass comes.
const firstLook = 200 * time.Millisecond

// Run makes passes until ctx ends, and then resigns.
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
			return // without budgets, the store is left alone
		}
		for _, org := range orgs {
			l.look(ctx, org)
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
				case l.look(ctx, org) == 0:
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

// look makes one pass and returns how many holds stay open. If the deadline of a pod is before the
// next regular pass, another pass follows at that time.
func (l *Loop) look(ctx context.Context, org string) int {
	report, err := l.Pass(ctx, org)
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrEpochChanged) {
		l.Logger.WarnContext(ctx, "a ledger could not be reconciled with the platform", "org", org, "error", err.Error())
	}
	if d := report.NextDeadline; d > 0 && d < l.Interval {
		time.AfterFunc(d, func() { l.Kick(org) })
	}
	return report.Open
}
