package spend

import (
	"context"
	"maps"
)

// offered is an offer for a rebuild.
type offered struct {
	owners   map[string]Owned
	gateways []string
}

// Heads implements Memorial.
func (m *Memory) Heads(_ context.Context, orgs []string) ([]Head, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	heads := make([]Head, len(orgs))
	for i, org := range orgs {
		l, _ := m.org(org)
		heads[i] = Head{Epoch: l.epoch, Seq: l.seq, Complete: l.complete}
	}
	return heads, nil
}

// Offer implements Memorial.
func (m *Memory) Offer(_ context.Context, org string, o *Offer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, now := m.org(org)
	if l.offers == nil {
		l.offers = make(map[int64]*offered)
	}
	if l.offers[o.Epoch] == nil {
		l.offers[o.Epoch] = &offered{owners: make(map[string]Owned)}
	}
	all := l.offers[o.Epoch]
	for id, owned := range o.Owners {
		if was, known := all.owners[id]; !known || was.Owner == (Owner{}) {
			all.owners[id] = owned
		}
	}
	for _, b := range o.Balances {
		if l.accounts[b.Scope] == nil {
			l.accounts[b.Scope] = newAccount(now, &l.calendar)
		}
		a, other := l.accounts[b.Scope], accountOf(b.Account(o.At, o.Zone))
		a.touch(now, &l.calendar)
		other.touch(now, &l.calendar)
		a.raise(other)
	}
	all.gateways = append(all.gateways, o.Gateway)
	return nil
}

// raise raises the accrued cost to at least another account's of the same period.
func (a *account) raise(other *account) {
	for i := range a.periods {
		if p := other.periods[i]; p.start == a.periods[i].start && p.accrued > a.periods[i].accrued {
			a.periods[i] = p
		}
	}
}

// Offered implements Memorial.
func (m *Memory) Offered(_ context.Context, org string, epoch int64) (map[string]Owned, []string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, _ := m.org(org)
	if all := l.offers[epoch]; all != nil {
		return maps.Clone(all.owners), all.gateways, nil
	}
	return nil, nil, nil
}
