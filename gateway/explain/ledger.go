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

	mu   sync.Mutex // guards the copy and read
	copy *ledger.Simulation
	read bool
}

// simulate calls do with the copy of an organisation's ledger, and reports whether the ledger could be read. Calls do not overlap.
func (l *dryLedger) simulate(ctx context.Context, org string, do func(*ledger.Simulation)) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.read && !l.Offline {
		l.read = true
		if state, err := l.DryRun.Ledger.Store.Show(ctx, org); err == nil && state.Complete {
			l.copy = ledger.NewSimulation(state)
		}
	}
	if l.copy != nil {
		do(l.copy)
	}
	return l.copy != nil
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
	q := ledger.Quote{Owner: r.Owner}
	l.simulate(ctx, org, func(s *ledger.Simulation) { q = s.Reserve(p, r) })
	return q, nil
}

// Settle implements filter.Ledger.
func (l *dryLedger) Settle(ctx context.Context, org string, st *ledger.Settlement) error {
	l.simulate(ctx, org, func(s *ledger.Simulation) { s.Settle(st) })
	return nil
}

// Owners implements filter.Ledger. The owners of jobs are unknown.
func (l *dryLedger) Owners(ctx context.Context, org string, resources []string, jobs ...ledger.Job) ([]ledger.Owner, error) {
	owners := make([]ledger.Owner, len(resources)+len(jobs))
	l.simulate(ctx, org, func(s *ledger.Simulation) { copy(owners, s.Owners(resources)) })
	return owners, nil
}

// CachedOwners implements filter.Ledger. It returns no owners.
func (*dryLedger) CachedOwners(_ string, resources []string) []ledger.Owner {
	return make([]ledger.Owner, len(resources))
}

// SetJobOwner implements filter.Ledger. It does nothing.
func (*dryLedger) SetJobOwner(context.Context, string, ledger.Job, ledger.Owner, time.Duration) error {
	return nil
}

// Observe implements filter.Ledger. It does nothing, because reads in a dry run do not update the ledger.
func (*dryLedger) Observe(context.Context, string, *ledger.PlatformResource, int64) error { return nil }

// Balances implements filter.Ledger.
func (l *dryLedger) Balances(ctx context.Context, org string, o ledger.Owner) (balances []ledger.Balance, err error) {
	if !l.simulate(ctx, org, func(s *ledger.Simulation) { balances = s.Balances(o) }) {
		return nil, ledger.ErrUnavailable
	}
	return balances, nil
}
