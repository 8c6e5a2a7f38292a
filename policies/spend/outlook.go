package spend

import (
	"context"
	"time"
)

// Outlook is what a scope is likely to spend.
type Outlook struct {
	Scope Scope
	// Burn is what it costs now, in micro-dollars per hour; Today and ThisMonth are
	// what has accrued, in micro-dollars.
	Burn, Today, ThisMonth int64
	// Day and Month estimate both at their ends.
	Day, Month Range
	// Days is how many whole days of history there were.
	Days int
}

// Outlooks forecasts what each scope of a ledger spends by the end of the day and of
// the month. The days that have passed, which it learns from, are those of UTC.
func (h *History) Outlooks(ctx context.Context, org string, state *State) ([]Outlook, error) {
	today, ends := Daily.Start(state.Now), state.Zone.Ends(state.Now)
	reach := min(h.Keep.Daily, 7*weeks)
	starts := make([]time.Time, 0, reach)
	for i := reach; i > 0; i-- {
		starts = append(starts, today.AddDate(0, 0, -i))
	}
	rows, err := h.Archive.Rollups(ctx, org, Daily, starts)
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
		o.Day = Forecast(o.Today, o.Burn, past, daysBetween(state.Now, ends[day]))
		o.Month = Forecast(o.ThisMonth, o.Burn, past, daysBetween(state.Now, ends[month]))
		out = append(out, o)
	}
	return out, nil
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
