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
// the month.
func (h *History) Outlooks(ctx context.Context, org string, state *State) ([]Outlook, error) {
	now := state.Now.UTC()
	today := Daily.Start(now)
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	reach := min(h.Keep.Daily, 7*weeks)
	starts := make([]time.Time, 0, reach+1)
	for i := reach; i >= 0; i-- {
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
		o := Outlook{Scope: b.Scope, Burn: b.Committed[Burn]}
		var past []int64
		if all := costs[b.Scope]; all != nil {
			o.Today, past = all[reach], wholeDays(all[:reach])
			for i, c := range all {
				if !starts[i].Before(month) {
					o.ThisMonth += c
				}
			}
		}
		o.Days = len(past)
		o.Day = Forecast(o.Today, o.Burn, past, daysBetween(now, today.AddDate(0, 0, 1)))
		o.Month = Forecast(o.ThisMonth, o.Burn, past, daysBetween(now, month.AddDate(0, 1, 0)))
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
