package ledger

import (
	"context"
	"slices"
)

// LostPart names the part of a ledger that a store has lost; "" means no loss.
type LostPart string

// Parts that can be lost.
const (
	// LostAll means that the store was emptied.
	LostAll LostPart = "all"
	// LostChanges means that the store reverted to an older state.
	LostChanges LostPart = "changes"
	// LostServer means that another server replaced the store's server and may lack changes, because a gateway that may have written to the
	// old server did not reconnect.
	LostServer LostPart = "server"
	// The remaining values name single keys.
	LostAccounts  LostPart = "accounts"
	LostResources LostPart = "resources"
	LostHolds     LostPart = "holds"
	LostEnded     LostPart = "ended"
)

// Losses returns the parts of a ledger that a store can lose.
func Losses() []LostPart {
	return []LostPart{LostAll, LostChanges, LostServer, LostAccounts, LostResources, LostHolds, LostEnded}
}

// String returns a description of the loss for messages.
func (l LostPart) String() string {
	switch l {
	case LostAll:
		return "the store was emptied"
	case LostChanges:
		return "the store reverted to an older state"
	case LostServer:
		return "the store moved to another server, and a gateway did not restore its data"
	case LostAccounts, LostResources, LostHolds, LostEnded:
		return "the store lost the key of its " + string(l)
	}
	return "nothing was lost"
}

// Difference is the sum of a scope's records and holds minus the stored sums of the scope.
type Difference struct {
	Scope               Scope
	Committed, Reserved Amounts
}

// Repair adds differences to the sums of scopes.
type Repair struct {
	// Version is the [State.Repairs] of the compared state. Nothing is changed if another repair was made since then.
	Version     int64
	Differences []Difference
}

// Differences compares the stored sums of each scope with the scope's records and holds. Calls change the sums and the records in one step,
// so a difference persists until it is repaired.
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

// plus returns the sum of two differences of the same scope.
func (d Difference) plus(other Difference) Difference {
	d.Committed.add(other.Committed, 1)
	d.Reserved.add(other.Reserved, 1)
	return d
}

// split divides each difference into a part that raises a sum and a part that lowers it.
func split(all []Difference) (above, below []Difference) {
	for _, d := range all {
		up := Difference{Scope: d.Scope, Committed: d.Committed.max(Amounts{}), Reserved: d.Reserved.max(Amounts{})}
		down := Difference{Scope: d.Scope, Committed: d.Committed.min(Amounts{}), Reserved: d.Reserved.min(Amounts{})}
		above, below = append(above, up), append(below, down)
	}
	return above, below
}

// repairSums repairs the differences in seen that still exist. others are additional differences of the same scopes, in the same order,
// which are not repaired.
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
		p.Logger.WarnContext(ctx, "repaired ledger sums that differed from the records", "org", p.org, "scope", d.Scope.String(),
			"committed", d.Committed, "reserved", d.Reserved)
	}
	p.report.Repaired += len(repair.Differences)
	return nil
}
