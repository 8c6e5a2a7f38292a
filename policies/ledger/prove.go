package ledger

import (
	"context"
	"slices"
)

// LostPart names the part of a ledger that a store has lost; "" is nothing.
type LostPart string

// The parts that can be lost.
const (
	// LostAll means that the store was emptied.
	LostAll LostPart = "all"
	// LostChanges means that it went back to an older state.
	LostChanges LostPart = "changes"
	// LostServer means that another server took its place, and a gateway that may have
	// written to the old one did not come back.
	LostServer LostPart = "server"
	// The rest are single keys.
	LostAccounts  LostPart = "accounts"
	LostResources LostPart = "resources"
	LostHolds     LostPart = "holds"
	LostEnded     LostPart = "ended"
)

// Losses lists the parts of a ledger that a store can lose.
func Losses() []LostPart {
	return []LostPart{LostAll, LostChanges, LostServer, LostAccounts, LostResources, LostHolds, LostEnded}
}

// String describes the loss, for people.
func (l LostPart) String() string {
	switch l {
	case LostAll:
		return "the store was emptied"
	case LostChanges:
		return "the store went back to an older state"
	case LostServer:
		return "another server took the store's place, and a gateway did not come back"
	case LostAccounts, LostResources, LostHolds, LostEnded:
		return "the store lost the key of its " + string(l)
	}
	return "nothing was lost"
}

// Difference is by how much the sums of a scope are below the sums of its records
// and holds.
type Difference struct {
	Scope               Scope
	Committed, Reserved Amounts
}

// Repair adds differences to sums.
type Repair struct {
	// Version is the [State.Repairs] of the state that the differences are of: if there
	// was another repair since then, nothing is done.
	Version     int64
	Differences []Difference
}

// Differences compares the sums with their summands. Calls change both in one
// step, so a difference stays as it is until it is repaired.
func (s *State) Differences() []Difference {
	sums := make(map[Scope]*Difference, len(s.Balances))
	of := func(scope Scope) *Difference {
		if sums[scope] == nil {
			sums[scope] = &Difference{Scope: scope}
		}
		return sums[scope]
	}
	for i := range s.Resources {
		for _, scope := range s.Resources[i].Owner.Scopes() {
			of(scope).Committed.add(s.Resources[i].Amounts, 1)
		}
	}
	for i := range s.Holds {
		for _, scope := range s.Holds[i].Owner.Scopes() {
			of(scope).Reserved.add(s.Holds[i].Amounts, 1)
		}
	}
	for i := range s.Balances {
		d := of(s.Balances[i].Scope)
		d.Committed.add(s.Balances[i].Committed, -1)
		d.Reserved.add(s.Balances[i].Reserved, -1)
	}
	var all []Difference
	for _, d := range sums {
		if d.Committed != (Amounts{}) || d.Reserved != (Amounts{}) {
			all = append(all, *d)
		}
	}
	return all
}

// plus is the sum of two differences of one scope.
func (d Difference) plus(other Difference) Difference {
	d.Committed.add(other.Committed, 1)
	d.Reserved.add(other.Reserved, 1)
	return d
}

// split divides differences, each into the part that raises a sum and the part that lowers it.
func split(all []Difference) (above, below []Difference) {
	for _, d := range all {
		up := Difference{Scope: d.Scope, Committed: d.Committed.max(Amounts{}), Reserved: d.Reserved.max(Amounts{})}
		down := Difference{Scope: d.Scope, Committed: d.Committed.min(Amounts{}), Reserved: d.Reserved.min(Amounts{})}
		above, below = append(above, up), append(below, down)
	}
	return above, below
}

// repairSums repairs differences that were seen before and are there still, together with
// others, of the same scopes in the same order, that are left as they are.
func (p *pass) repairSums(ctx context.Context, seen, others []Difference) error {
	if len(seen) == 0 {
		return nil
	}
	state, err := p.Store.Show(ctx, p.org)
	if err != nil {
		return err
	}
	repair, still := &Repair{Version: state.Repairs}, state.Differences()
	for i, d := range seen {
		all := d
		if others != nil {
			all = d.plus(others[i])
		}
		if d != (Difference{Scope: d.Scope}) && slices.Contains(still, all) {
			repair.Differences = append(repair.Differences, d)
		}
	}
	if len(repair.Differences) == 0 {
		return nil
	}
	done, err := p.Store.Repair(ctx, p.org, repair)
	if err != nil || !done {
		return err
	}
	for _, d := range repair.Differences {
		p.Logger.WarnContext(ctx, "the ledger's sums differed from what they are sums of, and were repaired", "org", p.org, "scope", d.Scope.String(),
			"committed", d.Committed, "reserved", d.Reserved)
	}
	p.report.Repaired += len(repair.Differences)
	return nil
}
