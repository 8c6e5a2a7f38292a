package ledger

import (
	"context"
	"sort"
	"strings"
	"time"
)

// Outlook is the current spending of a scope with a forecast.
type Outlook struct {
	Scope Scope
	// Burn is the current cost in micro-dollars per hour. Today and ThisMonth are the accrued costs in micro-dollars.
	Burn, Today, ThisMonth int64
	// Day and Month estimate the accrued costs at the end of the day and of the month.
	Day, Month Range
	// Ceilings is the usage of the scope's budget.
	Ceilings []CeilingUsage
	// Days is the number of whole days of history used.
	Days int
}

// CeilingUsage is the usage of one ceiling of a scope, for reports; see [AmountText] for units.
type CeilingUsage struct {
	// Index identifies the ceiling among the ceilings of the scope.
	Index int
	Limit int64
	// Used is the committed or accrued amount. Reserved is the amount of reservations; for a period budget it includes the cost of running
	// resources until the horizon.
	Used, Reserved int64
	// ExhaustedAt is the time when the accrued cost is expected to reach the limit. It is zero if that is after the end of the period or,
	// for a total, more than a year away.
	ExhaustedAt time.Time
	// Ends is the end of the period, and Expected is the forecast cost of the whole period. Both are zero for totals.
	Ends     time.Time
	Expected Range
	// Free is the amount that remains at the end of the period if the running resources and the calls in flight run until then. It is
	// negative if they exceed the limit, and zero for totals.
	Free int64
	// Unreserved is the cost that runs in progress may incur beyond their reservations.
	Unreserved int64
}

// Left returns the amount that calls can still use.
func (f *CeilingUsage) Left() int64 { return max(0, f.Limit-f.Used-f.Reserved) }

// MaxOverrun returns the largest possible excess over the limit caused by runs in progress.
func (f *CeilingUsage) MaxOverrun() int64 {
	if f.Unreserved == 0 {
		return 0
	}
	return max(0, f.Used+f.Reserved+f.Unreserved-f.Limit)
}

// Outlooks forecasts the spending of each scope that is in the ledger or has a budget, until the end of the day and of the month. The
// forecast is based on past UTC days. Outlooks adds empty balances to state for scopes that have a budget and no spending yet.
func (h *History) Outlooks(ctx context.Context, org string, plan *Plan, state *State) ([]Outlook, error) {
	plan.addUndrawn(state)
	today, ends := Daily.Start(state.Now), state.Zone.Ends(state.Now)
	reach := min(h.Retention.Daily, 7*weeks)
	starts := make([]time.Time, 0, reach)
	for i := reach; i > 0; i-- {
		starts = append(starts, today.AddDate(0, 0, -i))
	}
	costs, err := h.past(ctx, org, starts, today)
	if err != nil {
		return nil, err
	}
	out := make([]Outlook, 0, len(state.Balances))
	for _, b := range state.Balances {
		past := wholeDays(costs[b.Scope])
		o := Outlook{Scope: b.Scope, Burn: b.Committed[Burn], Today: b.Day, ThisMonth: b.Month, Days: len(past)}
		lasting, rest := o.Burn-b.Committed[Bounded], b.Committed[Cost] // costs with a known end are added once, not extrapolated
		o.Day = Forecast(o.Today+rest, lasting, past, daysBetween(state.Now, ends[day]))
		o.Month = Forecast(o.ThisMonth+rest, lasting, past, daysBetween(state.Now, ends[month]))
		o.Ceilings = plan.CeilingUsage(&b, state)
		whole := b.levels(state, Amounts{}, UntilPeriodEnd)
		for i := range o.Ceilings {
			full := &o.Ceilings[i]
			if !Accrues(full.Index) {
				continue
			}
			end := ends[full.Index-PerDay]
			if end.IsZero() {
				end = state.Now.AddDate(1, 0, 0)
			} else {
				full.Ends, full.Expected = end, Forecast(full.Used+rest, lasting, past, daysBetween(state.Now, end))
				full.Free = full.Limit - whole[full.Index].Used - whole[full.Index].Reserved
			}
			full.Unreserved = state.Unreserved(b.Scope)
			full.ExhaustedAt = usedUp(full.Limit, full.Used+rest, lasting, past, state.Zone.days(state.Now, end), state.Now)
		}
		out = append(out, o)
	}
	return out, nil
}

// pastCosts holds the costs of scopes in the days before a day, as of a version of the roll-ups.
type pastCosts struct {
	version int64
	today   time.Time
	costs   map[Scope][]int64
}

// past returns the costs of each scope on the given days, which end today. They are computed once for each version of the roll-ups, so
// they may lack late changes of these days that are not rolled up yet.
func (h *History) past(ctx context.Context, org string, days []time.Time, today time.Time) (map[Scope][]int64, error) {
	at, err := h.Store.RollupProgress(ctx, org)
	if err != nil {
		return nil, err
	}
	known, _ := h.pasts.Load(org)
	if p, ok := known.(pastCosts); ok && p.version == at.Version && p.today.Equal(today) {
		return p.costs, nil
	}
	rows, err := h.costs(ctx, org, nil, days)
	if err != nil {
		return nil, err
	}
	costs := make(map[Scope][]int64)
	for _, r := range rows {
		if r.Start.Before(days[0]) || !r.Start.Before(today) {
			continue
		}
		for _, s := range r.Item.Owner.Scopes() {
			if costs[s] == nil {
				costs[s] = make([]int64, len(days))
			}
			costs[s][int(r.Start.Sub(days[0])/Daily.Length())] += r.Micro
		}
	}
	h.pasts.Store(org, pastCosts{at.Version, today, costs})
	return costs, nil
}

// CeilingUsage returns the usage of each ceiling of a balance that has a limit.
func (p *Plan) CeilingUsage(b *Balance, s *State) (out []CeilingUsage) {
	limits := p.Budget(b.Scope).Limits()
	for i, level := range b.levels(s, Amounts{}, p.Horizon) {
		if limits[i] > 0 {
			out = append(out, CeilingUsage{Index: i, Limit: limits[i], Used: level.Used, Reserved: level.Reserved})
		}
	}
	return out
}

// usedUp returns the time when the accrued cost of a period is expected to reach the limit, or the zero time if the period ends earlier.
// days are the ends of the period's remaining days, starting with today. The cost of a day is assumed to accrue evenly.
func usedUp(limit, accrued, burn int64, past []int64, days []time.Time, now time.Time) time.Time {
	expected := func(at time.Time) int64 { return Forecast(accrued, burn, past, daysBetween(now, at)).Expected }
	i := sort.Search(len(days), func(i int) bool { return expected(days[i]) >= limit }) // forecasts never decrease from one day to the next
	if i == len(days) {
		return time.Time{}
	}
	from, end, before := now.In(days[i].Location()), days[i], accrued
	if i > 0 {
		from, before = days[i-1], expected(days[i-1])
	}
	if before >= limit {
		return from
	}
	part := float64(limit-before) / float64(expected(end)-before)
	return from.Add(time.Duration(part * float64(end.Sub(from)-time.Millisecond))).Truncate(time.Second) // on the day that ends at end
}

// addUndrawn adds an empty balance for each scope that has a budget and no balance. Keys of an issuer share a setting but not a budget;
// each of them gets a balance with its first spending.
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

// wholeDays drops all days up to and including the first day with a cost, which may have been counted only in part.
func wholeDays(costs []int64) []int64 {
	for i, c := range costs {
		if c > 0 {
			return costs[i+1:]
		}
	}
	return nil
}

func daysBetween(from, to time.Time) float64 { return to.Sub(from).Hours() / 24 }
