package explain

import (
	"context"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/policies/spend"
)

// dryLedger is a filter.Ledger that reserves in a copy: a simulated reservation counts
// for the rest of the run. Where the ledger cannot be read, every call is
// admitted and nothing is said of budgets.
type dryLedger struct {
	*DryRun

	mu   sync.Mutex // guards copy and read
	copy *spend.Ledger
	read bool
}

// of returns the copy of an organisation's ledger, nil if there is none.
func (l *dryLedger) of(ctx context.Context, org string) *spend.Ledger {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.read || l.Offline {
		return l.copy
	}
	l.read = true
	state, err := l.DryRun.Ledger.Store.Show(ctx, org)
	if err != nil || !state.Complete {
		return nil
	}
	memory := spend.NewMemory(l.Now, func(string) spend.Zone { return state.Zone })
	memory.Load(org, &state)
	l.copy = &spend.Ledger{Store: memory}
	return l.copy
}

// readOnlyLedger is the ledger, from which a dry run learns which resources can be kept. It keeps nothing.
type readOnlyLedger struct{ *DryRun }

// Show returns the ledger of an organisation.
func (k readOnlyLedger) Show(ctx context.Context, org string) (spend.State, error) {
	if k.Offline {
		return spend.State{}, ErrOffline
	}
	return k.Ledger.Store.Show(ctx, org)
}

// Notice does nothing.
func (readOnlyLedger) Notice(context.Context, string, string, string) error { return nil }

// Reserve implements filter.Ledger.
func (l *dryLedger) Reserve(ctx context.Context, org string, p *spend.Plan, r spend.Reservation) (spend.Quote, error) {
	if c := l.of(ctx, org); c != nil {
		return c.Reserve(ctx, org, p, r)
	}
	return spend.Quote{Owner: r.Owner}, nil
}

// Settle implements filter.Ledger.
func (l *dryLedger) Settle(ctx context.Context, org string, s *spend.Settlement) error {
	if c := l.of(ctx, org); c != nil {
		return c.Store.Settle(ctx, org, s)
	}
	return nil
}

// Owners implements filter.Ledger.
func (l *dryLedger) Owners(ctx context.Context, org string, resources []string, jobs ...spend.Job) ([]spend.Owner, error) {
	if c := l.of(ctx, org); c != nil {
		return c.Owners(ctx, org, resources, jobs...)
	}
	return make([]spend.Owner, len(resources)+len(jobs)), nil
}

// CachedOwners implements filter.Ledger. A dry run remembers nothing.
func (*dryLedger) CachedOwners(_ string, resources []string) []spend.Owner {
	return make([]spend.Owner, len(resources))
}

// SetJobOwner implements filter.Ledger.
func (l *dryLedger) SetJobOwner(ctx context.Context, org string, j spend.Job, o spend.Owner, keep time.Duration) error {
	if c := l.of(ctx, org); c != nil {
		return c.SetJobOwner(ctx, org, j, o, keep)
	}
	return nil
}

// Observe implements filter.Ledger. A dry run does not change the ledger by reading.
func (*dryLedger) Observe(context.Context, string, *spend.PlatformResource, int64) error { return nil }

// Balances implements filter.Ledger.
func (l *dryLedger) Balances(ctx context.Context, org string, o spend.Owner) ([]spend.Balance, error) {
	if c := l.of(ctx, org); c != nil {
		return c.Balances(ctx, org, o)
	}
	return nil, spend.ErrUnavailable
}
