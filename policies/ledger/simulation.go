package ledger

import (
	"slices"
	"time"
)

// Simulation is a copy of an organisation's ledger at one moment, for dry runs. Reservations and settlements change only the copy, and its
// time does not advance. It is not safe for concurrent use.
type Simulation struct{ state State }

// NewSimulation returns a simulation that begins with a state. The caller must not use the state afterwards.
func NewSimulation(s State) *Simulation { return &Simulation{s} }

// Reserve reserves the cost of a call under a plan; see [Ledger.Reserve].
func (s *Simulation) Reserve(p *Plan, r Reservation) Quote {
	var before Amounts
	pending := false
	if r.Resource != "" {
		r.Owner = Owner{}
		if record := s.resource(r.Resource); record != nil {
			r.Owner, before, pending = record.Owner, record.Amounts, record.Pending > 0
		}
	}
	r.Horizon, r.Limits = p.Horizon, p.limits(&r)
	var more Amounts
	if !r.Free {
		more = r.After.Clamped().Excess(before)
	}
	taken := func(h Hold) bool { return pending && h.CoveredBy(r.Resource, r.Owner, more) }
	var covered Amounts
	var until time.Time
	for _, h := range s.state.Holds {
		if taken(h) {
			covered.add(h.Amounts, 1)
			until = h.Until
		}
	}
	out := Outcome{Now: s.state.Now, Ends: s.state.Zone.Ends(s.state.Now)}
	for i, scope := range r.Owner.Scopes() {
		out.Levels = append(out.Levels, s.balance(scope).levels(&s.state, more.Excess(covered), r.Horizon))
		for c, limit := range r.Limits[i] {
			if level := out.Levels[i][c]; out.Status == Admitted && limit > 0 && level.Needs > 0 && level.Sum() > limit {
				out.Status, out.Scope, out.Ceiling = Refused, i, c
			}
		}
	}
	if out.Status == Admitted {
		s.reserved(r.Owner, covered, -1)
		s.reserved(r.Owner, more, 1)
		s.state.Holds = append(slices.DeleteFunc(s.state.Holds, taken), Hold{
			ID: r.Hold, Kind: r.Kind, Resource: r.Resource, Owner: r.Owner, Amounts: more, Metadata: r.Metadata, Until: until,
		})
	}
	return p.quote(&r, &out)
}

// Settle commits or releases a hold. A hold whose outcome is unknown remains reserved.
func (s *Simulation) Settle(st *Settlement) {
	i := slices.IndexFunc(s.state.Holds, func(h Hold) bool { return h.ID == st.Hold })
	if i < 0 || st.End == Open {
		return
	}
	h := s.state.Holds[i]
	if st.End == Release && !h.Open && !h.Until.IsZero() {
		s.state.Holds[i].Open = true
		return
	}
	s.state.Holds = slices.Delete(s.state.Holds, i, i+1)
	s.reserved(h.Owner, h.Amounts, -1)
	switch {
	case st.End == Release:
	case st.Resource != "":
		s.commit(st, &h)
	default:
		spent := st.Amounts.Clamped()[Cost]
		if st.WholeReservation {
			spent = h.MaxCost()
		}
		for _, scope := range h.Owner.Scopes() {
			b := s.balance(scope)
			b.Accrued = b.plus(spent)
		}
	}
}

// commit records the new state of a resource. Calls about it that are in progress may raise its amounts.
func (s *Simulation) commit(st *Settlement, h *Hold) {
	next := Record{ID: st.Resource, Kind: h.Kind, Owner: h.Owner, Metadata: h.Metadata, Amounts: st.Amounts.Clamped()}
	if old := s.resource(st.Resource); old != nil {
		if st.Gone && old.Kind != h.Kind {
			return
		}
		if old.Pending > 0 {
			next.Amounts = next.Amounts.max(old.Amounts)
		}
		next.Owner, next.Metadata, next.Pending = old.Owner, old.Metadata, old.Pending
		s.committed(old, -1)
		s.state.Resources = slices.DeleteFunc(s.state.Resources, func(r Record) bool { return r.ID == st.Resource })
	}
	if !st.Gone {
		s.committed(&next, 1)
		s.state.Resources = append(s.state.Resources, next)
	}
}

// Owners returns the owners of resources. An unknown owner is zero.
func (s *Simulation) Owners(resources []string) []Owner {
	owners := make([]Owner, len(resources))
	for i, id := range resources {
		if r := s.resource(id); r != nil {
			owners[i] = r.Owner
		}
	}
	return owners
}

// Balances returns the balances of an owner's scopes, in order.
func (s *Simulation) Balances(o Owner) (balances []Balance) {
	for _, scope := range o.Scopes() {
		balances = append(balances, *s.balance(scope))
	}
	return balances
}

// resource returns a resource of the copy, or nil.
func (s *Simulation) resource(id string) *Record {
	if i := slices.IndexFunc(s.state.Resources, func(r Record) bool { return r.ID == id }); i >= 0 {
		return &s.state.Resources[i]
	}
	return nil
}

// balance returns the balance of a scope. It is valid until the next call of balance.
func (s *Simulation) balance(scope Scope) *Balance {
	i := slices.IndexFunc(s.state.Balances, func(b Balance) bool { return b.Scope == scope })
	if i < 0 {
		i = len(s.state.Balances)
		s.state.Balances = append(s.state.Balances, Balance{Scope: scope})
	}
	return &s.state.Balances[i]
}

// reserved adds reserved amounts to an owner's scopes, or subtracts them if sign is negative.
func (s *Simulation) reserved(o Owner, a Amounts, sign int64) {
	for _, scope := range o.Scopes() {
		s.balance(scope).Reserved.add(a, sign)
	}
}

// committed adds a resource to its owner's scopes, or subtracts it if sign is negative.
func (s *Simulation) committed(r *Record, sign int64) {
	for _, scope := range r.Owner.Scopes() {
		s.balance(scope).Committed.add(r.Amounts, sign)
	}
}

// levels returns the usage of a scope's ceilings in a state, with the amounts that a call needs.
func (b *Balance) levels(s *State, more Amounts, h Horizon) (levels [Ceilings]Level) {
	c, now := s.Zone.Calendar(s.Now), s.Now.UnixMilli()
	all := b.Committed
	all.add(b.Reserved, 1)
	burn, adds := all[Burn]-all[Bounded], more[Burn]-more[Bounded]
	for i := range levels {
		if !Accrues(i) {
			d := dimension(i)
			levels[i] = Level{b.Committed[d], b.Reserved[d], more[d]}
			continue
		}
		_, end := c.bounds(i-PerDay, now)
		ms := h.ms(now, end)
		goes := forecast(burn, ms)
		needs := forecast(burn+adds, ms) - goes
		if adds > 0 {
			needs = max(1, needs)
		}
		l := Level{Used: b.used(i), Reserved: goes + all[Cost], Needs: needs + more[Cost]}
		if beyond := h.beyond(now, end); adds > 0 && beyond > 0 { // must fit into the next period
			l.Needs = max(l.Needs, forecast(burn+adds, beyond)-l.Used-l.Reserved)
		}
		levels[i] = l
	}
	return levels
}
