package ledger

import (
	"context"
	"slices"
	"sync"
)

// keptLedgers are the organisations whose ledger has been kept since this gateway started, or since a pass of this gateway. Without
// budgets, a ledger is not kept and becomes outdated.
type keptLedgers struct {
	passing sync.Mutex // held while ensure makes a pass

	mu   sync.Mutex // guards orgs
	orgs map[string]bool
}

// observe removes the ledgers that are not kept at the moment. The first call determines the initial ones. They need no pass, because the
// gateways that ran before have kept them, and the leader reconciles them when it starts.
func (k *keptLedgers) observe(budgeted []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.orgs == nil {
		k.orgs = make(map[string]bool)
		for _, org := range budgeted {
			k.orgs[org] = true
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

// has reports whether a ledger has been kept. It returns true before the first call of observe.
func (k *keptLedgers) has(org string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.orgs == nil || k.orgs[org]
}

// ensure reconciles a ledger that was not kept, because resources may have been created and deleted in the meantime.
func (l *Loop) ensure(ctx context.Context, org string) error {
	if l == nil || l.kept.has(org) {
		return nil
	}
	l.kept.passing.Lock()
	defer l.kept.passing.Unlock()
	if l.kept.has(org) {
		return nil
	}
	_, err := l.Pass(ctx, org)
	return err
}
