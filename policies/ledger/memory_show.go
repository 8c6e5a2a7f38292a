package ledger

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"
)

// Owners implements Store.
func (m *Memory) Owners(_ context.Context, org string, resources []string, jobs ...Job) ([]Owner, bool, error) {
	l, now, done := m.open(org)
	defer done()
	owners := make([]Owner, len(resources)+len(jobs))
	for i, id := range resources {
		if r := l.resources[id]; r != nil {
			owners[i] = r.Owner
		}
	}
	for i, j := range jobs {
		if noted := l.jobs[j]; noted.until > now {
			owners[len(resources)+i] = noted.owner
		}
	}
	return owners, l.complete, nil
}

// SetJobOwner implements Store.
func (m *Memory) SetJobOwner(_ context.Context, org string, j Job, o Owner, keep time.Duration) error {
	l, now, done := m.open(org)
	defer done()
	maps.DeleteFunc(l.jobs, func(_ Job, n note) bool { return n.until <= now })
	if _, noted := l.jobs[j]; !noted {
		l.jobs[j] = note{o, now + keep.Milliseconds()}
	}
	return nil
}

// Show implements Store.
func (m *Memory) Show(_ context.Context, org string) (State, error) {
	l, now, done := m.open(org)
	defer done()
	s := State{Now: time.UnixMilli(now), Zone: l.zone, Epoch: l.epoch, Complete: l.complete}
	for scope, a := range l.accounts {
		shown := *a
		shown.touch(now, &l.calendar)
		s.Balances = append(s.Balances, shown.balance(scope))
	}
	for _, r := range l.resources {
		s.Resources = append(s.Resources, *r)
	}
	for _, h := range l.holds {
		s.Holds = append(s.Holds, h.Hold)
	}
	s.Sort()
	return s, nil
}

// Balances implements Store.
func (m *Memory) Balances(_ context.Context, org string, o Owner) (State, error) {
	l, now, done := m.open(org)
	defer done()
	s := State{Now: time.UnixMilli(now), Zone: l.zone, Complete: l.complete}
	for i, a := range l.of(o, now) {
		s.Balances = append(s.Balances, a.balance(o.Scopes()[i]))
	}
	return s, nil
}

// accrued returns the accrued costs of the account.
func (a *account) accrued() (out [periods]int64) {
	for i, p := range a.periods {
		out[i] = p.accrued
	}
	return out
}

func (a *account) balance(s Scope) Balance {
	return Balance{Scope: s, Committed: a.committed, Reserved: a.reserved, Accrued: accruedOf(a.accrued())}
}

// Sort sorts balances with the organisation first, then teams, then keys, and everything else by ID.
func (s *State) Sort() {
	rank := map[ScopeKind]int{KindOrg: 0, KindTeam: 1, KindKey: 2}
	slices.SortFunc(s.Balances, func(a, b Balance) int {
		return cmp.Or(cmp.Compare(rank[a.Scope.Kind], rank[b.Scope.Kind]), cmp.Compare(a.Scope.ID, b.Scope.ID))
	})
	slices.SortFunc(s.Resources, func(a, b Record) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(s.Holds, func(a, b Hold) int { return cmp.Compare(a.ID, b.ID) })
}
