package ledger

import (
	"context"
	"maps"
	"time"
)

// offered holds the offers for one rebuild.
type offered struct {
	owners   map[string]Ownership
	at       map[string]time.Time // times of the owners, by resource
	gateways []string
}

// Heads implements RecoveryStore.
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

// Offer implements RecoveryStore.
func (m *Memory) Offer(_ context.Context, org string, o *Offer) error {
	l, now, done := m.open(org)
	defer done()
	all := l.offer(o.Epoch)
	for id, owned := range o.Owners {
		was, known := all.owners[id]
		if nobody := (Owner{}); !known || was.Owner == nobody || owned.Owner != nobody && o.At.After(all.at[id]) {
			all.owners[id], all.at[id] = owned, o.At
		}
	}
	for _, b := range o.Balances {
		other := accountOf(b.Encode(o.At, o.Zone))
		other.touch(now, &l.calendar)
		l.account(b.Scope, now).raise(other)
	}
	return nil
}

// Restore implements RecoveryStore.
func (m *Memory) Restore(_ context.Context, org string, r *Restoration) (restored []Hold, err error) {
	l, now, done := m.open(org)
	defer done()
	if l.epoch != r.Epoch {
		return nil, ErrEpochChanged
	}
	for _, id := range r.Ended {
		if h := l.holds[id]; h != nil {
			l.end(h, &Settlement{Hold: id, End: Release}, now)
		}
		l.forget(id, now)
	}
	for i := range r.Holds {
		h := &r.Holds[i]
		if held := l.holds[h.ID]; held != nil {
			if h.Open && !held.Open {
				held.Open, held.Until = true, h.Until
			}
			continue
		}
		if l.hasEnded(h.ID, now) {
			continue
		}
		for _, a := range l.of(h.Owner, now) {
			a.reserved.add(h.Amounts, 1)
			if !h.Accrued {
				a.correct(h.Amounts[Burn], h.At.UnixMilli(), a.at)
			}
		}
		l.holds[h.ID] = &hold{Hold: h.Hold, at: h.At.UnixMilli()}
		restored = append(restored, h.Hold)
	}
	for _, j := range r.Jobs {
		if _, noted := l.jobs[j.Job]; !noted {
			l.jobs[j.Job] = note{j.Owner, j.Until.UnixMilli()}
		}
	}
	return restored, nil
}

// MarkRestored implements RecoveryStore.
func (m *Memory) MarkRestored(_ context.Context, org string, epoch int64, gateway string) error {
	l, _, done := m.open(org)
	defer done()
	l.offer(epoch).gateways = append(l.offer(epoch).gateways, gateway)
	return nil
}

// offer returns the offers for a rebuild.
func (l *ledger) offer(epoch int64) *offered {
	if l.offers == nil {
		l.offers = make(map[int64]*offered)
	}
	if l.offers[epoch] == nil {
		l.offers[epoch] = &offered{owners: make(map[string]Ownership), at: make(map[string]time.Time)}
	}
	return l.offers[epoch]
}

// raise raises the accrued costs to the costs of another account, for periods that both accounts have in common.
func (a *account) raise(other *account) {
	for i := range a.periods {
		if p := other.periods[i]; p.start == a.periods[i].start && p.accrued > a.periods[i].accrued {
			a.periods[i] = p
		}
	}
}

// Offers implements RecoveryStore.
func (m *Memory) Offers(_ context.Context, org string, epoch int64) (map[string]Ownership, []string, error) {
	l, _, done := m.open(org)
	defer done()
	if all := l.offers[epoch]; all != nil {
		return maps.Clone(all.owners), all.gateways, nil
	}
	return nil, nil, nil
}

// Position implements RecoveryStore. It returns the zero Position, because a process does not lose its memory.
func (*Memory) Position(string) Position { return Position{} }

// SetPosition implements RecoveryStore.
func (*Memory) SetPosition(string, Position) {}

// Lock implements Store. It does not lock anything, because overlapping passes over a Memory are harmless.
func (*Memory) Lock(context.Context, string) (unlock func(), err error) { return func() {}, nil }
