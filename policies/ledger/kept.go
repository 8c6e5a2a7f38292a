package ledger

import (
	"context"
	"slices"
	"sync"
	"time"
)

// keptLedgers are the organisations whose ledger has been kept: each gateway with budgets for the organisation reconciles the ledger and
// records calls in it. Without budgets, a ledger is not kept and becomes outdated.
type keptLedgers struct {
	passing sync.Map // *sync.Mutex by organisation, held while ensure makes a pass

	mu sync.Mutex // guards orgs
	// orgs contains false for ledgers that have been kept since this gateway started, but perhaps not before.
	orgs map[string]bool
}

// observe removes the ledgers that are not kept at the moment. The first call determines the initial ones.
func (k *keptLedgers) observe(budgeted []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.orgs == nil {
		k.orgs = make(map[string]bool)
		for _, org := range budgeted {
			k.orgs[org] = false
		}
	}
	for org := range k.orgs {
		if !slices.Contains(budgeted, org) {
			delete(k.orgs, org)
		}
	}
}

// passed adds a ledger that has been reconciled.
func (k *keptLedgers) passed(org string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.orgs != nil {
		k.orgs[org] = true
	}
}

// has reports whether a ledger has been kept, and if not, whether it has been kept since the start. Before the first call of observe, it
// returns true.
func (k *keptLedgers) has(org string) (kept, sinceStart bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	kept, sinceStart = k.orgs[org]
	return kept || k.orgs == nil, sinceStart
}

// ensure reconciles a ledger that was not kept, because resources may have been created and deleted in the meantime. After the start, a
// ledger that other gateways have kept until recently needs no pass.
func (l *Loop) ensure(ctx context.Context, org string) error {
	if l == nil {
		return nil
	}
	kept, sinceStart := l.kept.has(org)
	if kept {
		return nil
	}
	if sinceStart {
		if recent, err := l.reconciledRecently(ctx, org); err != nil {
			return err
		} else if recent {
			l.kept.passed(org)
			return nil
		}
	}
	lock, _ := l.kept.passing.LoadOrStore(org, new(sync.Mutex))
	passing, _ := lock.(*sync.Mutex)
	passing.Lock()
	defer passing.Unlock()
	if kept, _ := l.kept.has(org); kept {
		return nil
	}
	_, err := l.Pass(ctx, org)
	return err
}

// reconciledRecently reports whether a gateway has made a pass in about the last two hours. Every pass rolls up the hours that have ended.
func (l *Loop) reconciledRecently(ctx context.Context, org string) (bool, error) {
	rolled, err := l.Store.RollupProgress(ctx, org)
	return err == nil && rolled.Now.Sub(rolled.Until) < max(2*time.Hour, 10*l.Interval), err
}
