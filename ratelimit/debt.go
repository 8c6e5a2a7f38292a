package ratelimit

import (
	"context"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Calls admitted by [FailLocal] are owed to the store. An account counts its debt against its share, and remembers the debt until the store
// has confirmed it or the windows have ended. Every request about a scope includes the debt of the scope. The store therefore knows the
// debt before it decides about a call of this gateway, and charges each debt once.

// owe adds units to the debt of the account. They were admitted in the windows localIndex. A new debt gets the next number.
func (a *account) owe(units int64, numbers *atomic.Int64) {
	if a.owed.Number == 0 {
		a.owed = Debt{Number: numbers.Add(1), Generation: a.state.Generation, Blind: a.storeNow == 0}
		a.acked = [Windows]int64{}
	}
	for w, index := range a.localIndex {
		if a.owed.Index[w] != index {
			a.owed.Index[w], a.owed.Units[w], a.acked[w] = index, 0, 0
		}
		a.owed.Units[w] += units
		a.local[w] += units
	}
}

// owes reports whether the account has a debt that the store may not have charged completely.
func (a *account) owes() bool { return a.owed.Number > 0 }

// unpaid returns the units that the account owes in window w with the given index.
func (a *account) unpaid(w int, index int64) int64 {
	if !a.owes() || a.owed.Index[w] != index {
		return 0
	}
	return a.owed.Units[w] - a.acked[w]
}

// pay records that the store has charged d.
func (a *account) pay(d *Debt) {
	if a.owed.Number != d.Number {
		return
	}
	rest := false
	for w := range Windows {
		if a.owed.Index[w] == d.Index[w] {
			a.acked[w] = max(a.acked[w], d.Units[w])
		}
		rest = rest || a.acked[w] < a.owed.Units[w]
	}
	if !rest {
		a.owed = Debt{}
	}
}

// expire drops the debt of the account if all of its windows have ended by storeNow, in Unix milliseconds.
func (a *account) expire(storeNow int64) {
	if a.owed.Index[Windows-1] < storeNow/windowMillis(Windows-1) {
		a.owed = Debt{}
	}
}

// attachDebts adds to op the debts of its scopes.
func (l *Limiter) attachDebts(op *Op) {
	if !l.indebted.Load() {
		return
	}
	l.eachAccount(op, func(i int, a *account) {
		if !a.owes() {
			return
		}
		if op.Debts == nil {
			op.Debts, op.Debtor = make([]Debt, len(op.Scopes)), l.debtor
		}
		op.Debts[i] = a.owed
	})
}

// paid applies the store's reply to a request that included debts. Each debt is removed from its account in the same step that adds it to
// the account's count.
func (l *Limiter) paid(op *Op, ans answer) {
	if op.Debts == nil {
		return
	}
	l.eachAccount(op, func(i int, a *account) {
		if op.Debts[i].Number > 0 {
			a.learn(op.Scopes[i].Limit, &op.After[i], ans)
			a.pay(&op.Debts[i])
		}
	})
}

// apply sends ops, which belong to one group, to the store in one round trip, with the debts of their scopes. calls is the number of calls
// that the round trip serves.
func (l *Limiter) apply(ctx context.Context, ops []Op, calls int) (answer, error) {
	for i := range ops {
		l.attachDebts(&ops[i])
	}
	sent := l.tick()
	now, err := l.deps.Store.Apply(ctx, ops)
	ans := answer{now: now, sent: sent, got: l.tick()}
	if err == nil {
		for i := range ops {
			l.paid(&ops[i], ans)
		}
	}
	l.exchanged(ctx, l.deps.Store.Group(ops[0].Org), calls, ans.got-ans.sent, err)
	return ans, err
}

// charge sends all debts to the available parts of the store, because a scope may have no further calls that would send its debt.
func (l *Limiter) charge(ctx context.Context) {
	if !l.indebted.Load() {
		return
	}
	groups := make(map[string][]Op)
	now := l.tick()
	l.book.each(func(a *account) bool {
		if a.owes() {
			a.expire(l.storeTime(a, now))
		}
		if a.owes() {
			scope := Scope{Kind: a.ref.Kind, ID: a.ref.ID, Limit: a.limit}
			group := l.deps.Store.Group(a.org)
			groups[group] = append(groups[group], Op{Org: a.org, Scopes: []Scope{scope}})
		}
		return true
	})
	var exchanges errgroup.Group
	exchanges.SetLimit(adjustFlights)
	for group, list := range groups {
		if !l.canCallStore(group, now) {
			continue
		}
		exchanges.Go(func() error {
			for ops := range slices.Chunk(list, adjustBatch) {
				if err := l.chargeSome(ctx, ops); err != nil {
					return err
				}
			}
			return nil
		})
	}
	_ = exchanges.Wait() // uncharged debts stay in their accounts
}

// chargeSome sends the debts of ops in one round trip.
func (l *Limiter) chargeSome(ctx context.Context, ops []Op) error {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	l.exchanging.RLock()
	defer l.exchanging.RUnlock()
	_, err := l.apply(ctx, ops, 0)
	return err
}
