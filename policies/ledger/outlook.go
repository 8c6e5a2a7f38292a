package ledger

import (
	"context"
	"sort"
	"strings"
	"time"
)

// Outlook is the likely spend of a scope.
type Outlook struct {
	Scope Scope
	// Burn is its present cost, in micro-dollars per hour; Today and ThisMonth are
	// its accrued costs, in micro-dollars.
	Burn, Today, ThisMonth int64
	// Day and Month estimate both at their ends.
	Day, Month Range
	// Ceilings are those of the scope's budget, and how full they are.
	Ceilings []CeilingUsage
	// Days is how many whole days of history there were.
	Days int
}

// CeilingUsage is how full one ceiling of a scope is; see [AmountText].
type CeilingUsage struct {
	// Index says which of the ceilings it is.
	Index int
	Limit int64
	// Used is the committed or accrued amount, Reserved the amount that calls find reserved: of a
	// budget of a period also the cost of running resources for the horizon.
	Used, Reserved int64
	// ExhaustedOn is the day on which a period's accrued cost is expected to reach the limit,
	// zero if it is not within the period, or for a total not within a year.
	ExhaustedOn time.Time
	// Unreserved is the possible cost of runs under way beyond their reservations.
	Unreserved int64
}

// Remaining is the amount that a call may still take.
func (f *CeilingUsage) Left() int64 { return max(0, f.Limit-f.Used-f.Reserved) }

// ActionBudgetActionverrunss is by how much runs under way can pass it at most.
func (f *CeilingUsage) MaxOverrun() int64 {
	if f.Unreserved == 0 {
		return 0
	}
	return max(0, f.Used+f.Reserved+f.Unreserved-f.Limit)
}

// Outlooks forecasts the spend of each scope of a ledger, or with a budget, by the end of
// the day and of the month. The days that have passed, which it learns from, are those
// of UTC. It adds to the state the balances of scopes that have not drawn on their
// budget yet.
func (h *History) Outlooks(ctx context.Context, org string, plan *Plan, state *State) ([]Outlook, error) {
	plan.addUndrawn(state)
	today, ends := Daily.Start(state.Now), state.Zone.Ends(state.Now)
	reach := min(h.Retention.Daily, 7*weeks)
	starts := make([]time.Time, 0, reach)
	for i := reach; i > 0; i-- {
		starts = append(starts, today.AddDate(0, 0, -i))
	}
	rows, err := h.Store.Rollups(ctx, org, Daily, starts)
	if err != nil {
		return nil, err
	}
	costs := make(map[Scope][]int64)
	for _, r := range rows {
		for _, s := range r.Item.Owner.Scopes() {
			if costs[s] == nil {
				costs[s] = make([]int64, len(starts))
			}
			costs[s][int(r.Start.Sub(starts[0])/Daily.Length())] += r.Micro
		}
	}
	out := make([]Outlook, 0, len(state.Balances))
	for _, b := range state.Balances {
		past := wholeDays(costs[b.Scope])
		o := Outlook{Scope: b.Scope, Burn: b.Committed[Burn], Today: b.Day, ThisMonth: b.Month, Days: len(past)}
		lasting, rest := o.Burn-b.Committed[Bounded], b.Committed[Cost] // what ends by itself costs its rest, once
		o.Day = Forecast(o.Today+rest, lasting, past, daysBetween(state.Now, ends[day]))
		o.Month = Forecast(o.ThisMonth+rest, lasting, past, daysBetween(state.Now, ends[month]))
		o.Ceilings = plan.CeilingUsage(&b, state)
		for i := range o.Ceilings {
			full := &o.Ceilings[i]
			if !Accrues(full.Index) {
				continue
			}
			end := ends[full.Index-PerDay]
			if end.IsZero() {
				end = state.Now.AddDate(1, 0, 0)
			}
			full.Unreserved = state.Unreserved(b.Scope)
			full.ExhaustedOn = usedUp(full.Limit, full.Used+rest, lasting, past, state.Zone.days(state.Now, end), state.Now)
		}
		out = append(out, o)
	}
	return out, nil
}

// CeilingUsage is how full the ceilings of a balance are, those that limit nothing left out.
func (p *Plan) CeilingUsage(b *Balance, s *State) (out []CeilingUsage) {
	limits := p.Budget(b.Scope).Limits()
	for i, level := range b.levels(s, p.Horizon) {
		if limits[i] > 0 {
			out = append(out, CeilingUsage{Index: i, Limit: limits[i], Used: level.Used, Reserved: level.Reserved})
		}
	}
	return out
}

// usedUp is the day by whose end the accrued cost of a period is expected to reach a
// limit, zero if the period ends before that. days are the ends of the period's days, from that of now on.
func usedUp(limit, accrued, burn int64, past []int64, days []time.Time, now time.Time) time.Time {
	i := sort.Search(len(days), func(i int) bool { // forecasts never fall from one day to the next
		return Forecast(accrued, burn, past, daysBetween(now, days[i])).Expected >= limit
	})
	if i == len(days) {
		return time.Time{}
	}
	return days[i].Add(-time.Millisecond)
}

// addUndrawn adds a balance of nothing for each scope that has a budget and none. Keys
// of an issuer, who share a setting and not a budget, have one when they draw on it.
func (p *Plan) addUndrawn(s *State) {
	known := make(map[Scope]bool, len(s.Balances))
	for _, b := range s.Balances {
		known[b.Scope] = true
	}
	add := func(kind ScopeKind, id string, b Budget) {
		scope := Scope{Kind: kind, ID: id}
		if b.Limits() != [Ceilings]int64{} && !known[scope] && !strings.HasSuffix(id, ":") {
			s.Balances = append(s.Balances, Balance{Scope: scope})
		}
	}
	add(KindOrg, "", p.Org)
	for id, b := range p.Teams {
		add(KindTeam, id, b)
	}
	for id, b := range p.Keys {
		add(KindKey, id, b)
	}
	s.Sort()
}

// levels is how full the ceilings of a balance are for a call.
func (b Balance) levels(s *State, h Horizon) [Ceilings]Level {
	c := s.Zone.Calendar(s.Now)
	return accountOf(b.Encode(s.Now, s.Zone)).levels(Amounts{}, h, &c)
}

// wholeDays leaves out the days before the first that cost something, and that one,
// of which it is not known whether it was counted from its beginning.
func wholeDays(costs []int64) []int64 {
	for i, c := range costs {
		if c > 0 {
			return costs[i+1:]
		}
	}
	return nil
}

func daysBetween(from, to time.Time) float64 { return to.Sub(from).Hours() / 24 }
