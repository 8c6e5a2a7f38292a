package storetest

import (
	"cmp"
	"context"
	"maps"
	"time"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// Owners implements Store.
func (m *Memory) Owners(_ context.Context, org string, resources []string, jobs ...ledger.Job) ([]ledger.Owner, bool, error) {
	l, now, done := m.open(org)
	defer done()
	owners := make([]ledger.Owner, len(resources)+len(jobs))
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
func (m *Memory) SetJobOwner(_ context.Context, org string, j ledger.Job, o ledger.Owner, keep time.Duration) error {
	l, now, done := m.open(org)
	defer done()
	maps.DeleteFunc(l.jobs, func(_ ledger.Job, n note) bool { return n.until <= now })
	if _, noted := l.jobs[j]; !noted {
		l.jobs[j] = note{o, now + keep.Milliseconds()}
	}
	return nil
}

// Show implements Store.
func (m *Memory) Show(_ context.Context, org string) (ledger.State, error) {
	l, now, done := m.open(org)
	defer done()
	s := ledger.State{Now: time.UnixMilli(now), Zone: l.zone, Epoch: l.epoch, Complete: l.complete, Repairs: m.rest(org).repairs}
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
func (m *Memory) Balances(_ context.Context, org string, o ledger.Owner) (ledger.State, error) {
	l, now, done := m.open(org)
	defer done()
	s := ledger.State{Now: time.UnixMilli(now), Zone: l.zone, Complete: l.complete}
	for _, scope := range o.Scopes() {
		shown := *cmp.Or(l.accounts[scope], newAccount(now, &l.calendar))
		shown.touch(now, &l.calendar)
		s.Balances = append(s.Balances, shown.balance(scope))
	}
	return s, nil
}
