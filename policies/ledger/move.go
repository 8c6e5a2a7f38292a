package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Move transfers the resources of a team, and the costs it has accrued in the current periods, to another team.
type Move struct {
	From, To string // teams
	// Key limits the move to the resources of a key and the costs that the key has accrued; "" moves the whole team.
	Key string
	// Again moves the accrued costs of a key although the same move was made before. It moves those recorded since then.
	Again bool
}

// of reports whether the move includes an owner's resources.
func (m Move) of(o Owner) bool { return o.Team == m.From && (m.Key == "" || o.Key == m.Key) }

// MoveResult summarizes an applied [Move].
type MoveResult struct {
	// Resources is the number of moved resources. Pending is the number of resources and reservations that were not moved because calls about
	// them are in progress. The next pass moves them.
	Resources, Pending int
	// Accrued is the accrued cost that was moved.
	Accrued
}

// Move applies m. It leaves resources with calls in progress to the next pass, and returns ErrUnavailable if the ledger is incomplete. If m
// is applied again, Move transfers the entries that were recorded under the old name in the meantime, but the accrued costs of a key only
// together with resources or if m.Again is set.
func (r *Reconciler) Move(ctx context.Context, org string, m Move) (c MoveResult, err error) {
	state, err := r.Store.Show(ctx, org)
	if err != nil {
		return c, err
	}
	return r.moveOwner(ctx, org, m, &state)
}

// moveNow applies a move of a plan. It rebuilds an incomplete ledger first.
func (r *Reconciler) moveNow(ctx context.Context, org string, m Move) error {
	_, err := r.Move(ctx, org, m)
	if errors.Is(err, ErrUnavailable) {
		if rebuilt := r.Rebuild(ctx, org); rebuilt != nil {
			return rebuilt
		}
		_, err = r.Move(ctx, org, m)
	}
	return err
}

func (r *Reconciler) moveOwner(ctx context.Context, org string, m Move, state *State) (c MoveResult, err error) {
	if !state.Complete {
		return c, fmt.Errorf("%w: the ledger is being rebuilt", ErrUnavailable)
	}
	var list []*Adjustment
	for i := range state.Resources {
		if known := &state.Resources[i]; m.of(known.Owner) {
			list = append(list, &Adjustment{
				Kind: known.Kind, Resource: known.ID, Version: known.Version, Amounts: known.Amounts,
				Owner: &Owner{Team: m.To, Key: known.Owner.Key},
			})
		}
	}
	done, err := r.Store.Adjust(ctx, org, list...)
	if err != nil {
		return c, err
	}
	for _, one := range done {
		if one == AdjustSkipped {
			c.Pending++
		} else {
			c.Resources++
		}
	}
	for i := range state.Holds {
		if m.of(state.Holds[i].Owner) {
			c.Pending++
		}
	}
	m.Again = m.Again || c.Resources > 0
	out, err := r.moveAccrued(ctx, org, m, state)
	if err != nil {
		return c, err
	}
	if out.Status == AccrualClosed {
		return c, fmt.Errorf("%w: the ledger is being rebuilt", ErrUnavailable)
	}
	c.Accrued = out.Change
	return c, nil
}

// left reports whether the ledger still has entries under the old name of a move.
func (m Move) left(state *State) bool {
	return slices.ContainsFunc(state.Resources, func(r Record) bool { return m.of(r.Owner) }) ||
		slices.ContainsFunc(state.Holds, func(h Hold) bool { return m.of(h.Owner) }) ||
		slices.ContainsFunc(state.Balances, func(b Balance) bool {
			return m.Key == "" && b.Scope == Scope{KindTeam, m.From} && b != Balance{Scope: b.Scope}
		})
}

// moveAll applies the unfinished moves of an organisation's plan, and reports whether there were any.
func (p *pass) moveAll(ctx context.Context, state *State) (any bool, err error) {
	if p.plan == nil || !state.Complete {
		return false, nil
	}
	for _, m := range p.plan.Moves {
		if !m.left(state) {
			continue
		}
		any = true
		c, err := p.moveOwner(ctx, p.org, m, state)
		if err != nil {
			return any, err
		}
		if c.Resources > 0 || c.Total > 0 {
			p.Logger.InfoContext(ctx, "moved resources and accrued costs of a renamed team or reassigned key", "org", p.org, "from", m.From,
				"team", m.To, "key", m.Key, "resources", c.Resources, "pending", c.Pending)
		}
	}
	return any, nil
}

// doneMoves records the moves that a gateway has applied since its start. They are applied before the gateway's first reservation.
type doneMoves struct {
	mu   sync.Mutex // held while moves are applied
	done map[string]bool
}

// ensure applies the moves that have not been applied yet.
func (m *doneMoves) ensure(ctx context.Context, org string, moves []Move, books *Loop) error {
	if len(moves) == 0 || books == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, move := range moves {
		key := fmt.Sprintf("%s\n%s\n%s\n%s", org, move.From, move.To, move.Key)
		if m.done[key] {
			continue
		}
		if err := books.moveNow(ctx, org, move); err != nil {
			return err
		}
		if m.done == nil {
			m.done = make(map[string]bool)
		}
		m.done[key] = true
	}
	return nil
}

// Orphan summarizes the ledger entries of a team that is missing from the configuration, or of a key that is missing from its team.
type Orphan struct {
	// Owner has a Key if the team exists and only the key is missing.
	Owner     Owner
	Resources int
	// Burn is in micro-dollars per hour. Accrued is zero for a key.
	Burn int64
	Accrued
}

// Orphans returns the ledger entries of owners that exists rejects. If a whole team is missing, its keys are not listed separately.
func (s *State) Orphans(exists func(Owner) bool) []Orphan {
	found := make(map[Owner]*Orphan)
	of := func(o Owner) *Orphan {
		if o.Team == "" || exists(o) {
			return nil
		}
		if !exists(Owner{Team: o.Team}) {
			o.Key = ""
		}
		if found[o] == nil {
			found[o] = &Orphan{Owner: o}
		}
		return found[o]
	}
	for i := range s.Resources {
		if r := of(s.Resources[i].Owner); r != nil {
			r.Resources++
			r.Burn += s.Resources[i].Amounts[Burn]
		}
	}
	for _, b := range s.Balances {
		if b.Scope.Kind != KindTeam || b.Day == 0 && b.Month == 0 {
			continue
		}
		if r := of(Owner{Team: b.Scope.ID}); r != nil {
			r.Accrued = b.Accrued
		}
	}
	list := make([]Orphan, 0, len(found))
	for _, r := range found {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b Orphan) int {
		return cmp.Or(cmp.Compare(a.Owner.Team, b.Owner.Team), cmp.Compare(a.Owner.Key, b.Owner.Key))
	})
	return list
}
