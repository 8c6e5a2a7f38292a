package explain

import (
	"context"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// dryLedger is a filter.Ledger that reserves in a copy of the ledger, so that simulated reservations count for the rest of the run. If the
// ledger cannot be read, every call is admitted and budgets are not mentioned.
type dryLedger struct {
	*DryRun

	mu   sync.Mutex // guards copy and read
	copy *ledger.Ledger
	read bool
}

// of returns the copy of an organisation's ledger, nil if it cannot be read.
func (l *dryLedger) of(ctx context.Context, org string) *ledger.Ledger {
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
	memory := ledger.NewMemory(l.Now, func(string) ledger.Zone { return state.Zone })
	memory.Load(org, &state)
	l.copy = &ledger.Ledger{Store: memory}
	return l.copy
}

// readOnlyLedger lets a dry run read which resources can be exempted from idle handling. It changes nothing.
type readOnlyLedger struct{ *DryRun }

// Show returns the ledger of an organisation.
func (k readOnlyLedger) Show(ctx context.Context, org string) (ledger.State, error) {
	if k.Offline {
		return ledger.State{}, errOffline
	}
	return k.Ledger.Store.Show(ctx, org)
}

// Notice does nothing.
func (readOnlyLedger) Notice(context.Context, string, string, string) error { return nil }

// Reserve implements filter.Ledger.
func (l *dryLedger) Reserve(ctx context.Context, org string, p *ledger.Plan, r ledger.Reservation) (ledger.Quote, error) {
	if c := l.of(ctx, org); c != nil {
		return c.Reserve(ctx, org, p, r)
	}
	return ledger.Quote{Owner: r.Owner}, nil
}

// Settle implements filter.Ledger.
func (l *dryLedger) Settle(ctx context.Context, org string, s *ledger.Settlement) error {
	if c := l.of(ctx, org); c != nil {
		return c.Store.Settle(ctx, org, s)
	}
	return nil
}

// Owners implements filter.Ledger.
func (l *dryLedger) Owners(ctx context.Context, org string, resources []string, jobs ...ledger.Job) ([]ledger.Owner, error) {
	if c := l.of(ctx, org); c != nil {
		return c.Owners(ctx, org, resources, jobs...)
	}
	return make([]ledger.Owner, len(resources)+len(jobs)), nil
}

// CachedOwners implements filter.Ledger. It returns no owners.
func (*dryLedger) CachedOwners(_ string, resources []string) []ledger.Owner {
	return make([]ledger.Owner, len(resources))
}

// SetJobOwner implements filter.Ledger.
func (l *dryLedger) SetJobOwner(ctx context.Context, org string, j ledger.Job, o ledger.Owner, keep time.Duration) error {
	if c := l.of(ctx, org); c != nil {
		return c.SetJobOwner(ctx, org, j, o, keep)
	}
	return nil
}

// Observe implements filter.Ledger. It does nothing, because reads in a dry run do not update the ledger.
func (*dryLedger) Observe(context.Context, string, *ledger.PlatformResource, int64) error { return nil }

// Balances implements filter.Ledger.
func (l *dryLedger) Balances(ctx context.Context, org string, o ledger.Owner) ([]ledger.Balance, error) {
	if c := l.of(ctx, org); c != nil {
		return c.Balances(ctx, org, o)
	}
	return nil, ledger.ErrUnavailable
}
